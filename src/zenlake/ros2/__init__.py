"""ROS 2 on Zenoh, as rmw_zenoh and the ros2dds bridge write it: keys, tokens, types and CDR.

    names         what a data key says: domain, topic, type, hash
    tokens        what a liveliness token says of a node or an endpoint: node, topic, type, QoS
    attachment    what comes with each sample: sequence number, time, gid
    description   what a type is made of, and its hash (RIHS01)
    definitions   where descriptions come from: packages, `.msg` folders, schemas, other nodes
    cdr           payloads to Arrow columns, many at once

Nothing here needs ROS to be installed, and nothing opens a connection.
"""
