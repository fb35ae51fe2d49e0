"""The 2018 protocol at work: its sockets and clocks, and the way into the data space of 1.x.

wires      bytes onto a link, which may take them later
brokering  a broker on links, with a loop thread of its own
client     a session with a broker, for programs: blocking
aio        the same, awaitable
peer       programs that find each other and need no broker
scouting   who is there: by multicast, or asked directly
translate  names of 2018 as key expressions of 1.x, and back
bridge     the broker's outside: a session of 1.x
service    a broker beside a router, as its configuration says
volume     values that outlive the broker, in a volume of the storages
"""
