"""DDS topics and partitions as resources, and back.

    >>> resource_of(Topic("house.*", "Light", "TRANSIENT"))
    'zenoh://house/**/Light#transient'
    >>> topic_of("zenoh://house/attic/Light")
    Topic(partition='house.attic', topic='Light', durability='VOLATILE')

A reader or writer has a resource for each of its partitions. A `*` of a partition crosses its
separator, so it is `**` in a path. Topic type and quality of service travel as properties.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from zenlake.errors import DecodeError, EncodeError
from zenlake.xrce.codec import Property
from zenlake.xrce.names import Name, parse_name

__all__ = ["Topic", "resource_of", "topic_of", "topic_properties"]

#: Vendor properties of a resource: the name of the topic's type, and its DDSI parameter list.
TYPE_NAME: Final = 21
QOS: Final = 23

#: What a DDS durability is in a name.
DURABILITIES: Final = {
    "VOLATILE": "", "TRANSIENT_LOCAL": "transient", "TRANSIENT": "transient",
    "PERSISTENT": "persistent",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic in one partition."""

    partition: str
    topic: str
    durability: str = "VOLATILE"


def resource_of(topic: Topic, separator: str = ".") -> str:
    """The resource of a reader or writer in one partition."""
    if "[" in topic.partition or "]" in topic.partition:
        raise EncodeError(
            f"the partition '{topic.partition}' has a character class, which resources cannot "
            "say; write one partition for each"
        )
    path = topic.partition.replace(separator, "/") if separator else topic.partition
    while True:
        changed = path.replace("**", "*").replace("*?", "?*")
        if changed == path:
            break
        path = changed
    path = path.replace("*", "**")
    tag = DURABILITIES.get(topic.durability)
    if tag is None:
        raise EncodeError(
            f"the durability '{topic.durability}' is none of {', '.join(DURABILITIES)}"
        )
    return f"zenoh://{path + '/' if path else ''}{topic.topic}{'#' + tag if tag else ''}"


def topic_properties(type_name: str, qos: bytes = b"") -> tuple[Property, ...]:
    """Return the properties of a topic's resource: its type, its QoS as a DDSI parameter list."""
    type_property = Property(id=TYPE_NAME, value=type_name.encode())
    return (type_property, Property(id=QOS, value=qos)) if qos else (type_property,)


def topic_of(resource: str | Name, separator: str = ".") -> Topic:
    """The topic and partition that a resource stands for."""
    name = parse_name(resource) if isinstance(resource, str) else resource
    head, _, topic = name.path.rpartition("/")
    if "*" in topic or "?" in topic:
        raise DecodeError(f"'{name.text()}' ends in a wildcard: no topic is called so")
    partition = head.replace("**", "*").replace("/", separator)
    durability = ("VOLATILE", "TRANSIENT", "PERSISTENT")[name.durability]
    return Topic(partition, topic, durability)
