"""What follows from the graph of ROS 2: questions for types, and subscriptions to show."""

from __future__ import annotations

from typing import Any

import pytest
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from zenlake.errors import DecodeError
from zenlake.ros2.definitions import Definitions, described_by_text
from zenlake.ros2.description import TypeDescription
from zenlake.ros2.graph import AGAIN, Ros2Graph, TypeQuestion, WantedSubscription
from zenlake.ros2.tokens import EntityKind, endpoint_token
from zenlake.ros2.type_service import SERVICE, read_reply, write_request

STORE = get_typestore(Stores.ROS2_JAZZY)
PART = described_by_text("Bolt[] bolts\nfloat32 load\n" + "=" * 80 + "\nMSG: shop/Bolt\nuint8 n\n",
                         "shop/msg/Part")  # fmt: skip
SERVICE_TYPE = "type_description_interfaces/srv/GetTypeDescription"
SERVICE_HASH = "RIHS01_69b9c19c1021405984cc60dbbb1edceb147a6538b411d812ba6afabeed962cd5"


def token(kind: EntityKind, name: str, type: str, hash: str, backends: str = "") -> str:
    return endpoint_token(kind, 0, "ab", (0, 1), "/r1/arm", name, type, hash, backends=backends)


PUBLISHER = token(EntityKind.PUBLISHER, "/r1/part", "shop/msg/Part", PART.hash)
OFFER = token(EntityKind.SERVICE, f"/r1/arm/{SERVICE}", SERVICE_TYPE, SERVICE_HASH)


def graph(definitions: Definitions | None = None) -> Ros2Graph:
    known = definitions or Definitions()
    return Ros2Graph(lambda type, hash: known.find(type, hash) is not None)


def replied(description: TypeDescription, successful: bool = True) -> bytes:
    """What a node of ROS answers, written by rosbags."""
    name = "x/msg/Reply"
    text = (
        "bool successful\nstring failure_reason\n"
        "type_description_interfaces/TypeDescription type_description\n"
        "type_description_interfaces/TypeSource[] type_sources\n"
        "type_description_interfaces/KeyValue[] extra_information\n"
    )
    if name not in STORE.types:
        STORE.register(get_types_from_msg(text, name))
    types = STORE.types
    inside = "type_description_interfaces/msg/"

    def individual(one: Any) -> Any:
        fields = [
            types[f"{inside}Field"](
                name=field.name,
                type=types[f"{inside}FieldType"](
                    type_id=field.type.type_id,
                    capacity=field.type.capacity,
                    string_capacity=field.type.string_capacity,
                    nested_type_name=field.type.nested,
                ),
                default_value="",
            )
            for field in one.fields
        ]
        made = types[f"{inside}IndividualTypeDescription"]
        return made(type_name=one.name, fields=fields)

    described = types[f"{inside}TypeDescription"](
        type_description=individual(description.main),
        referenced_type_descriptions=[individual(one) for one in description.referenced],
    )
    reply = types[name](
        successful=successful,
        failure_reason="" if successful else "no such type",
        type_description=described,
        type_sources=[],
        extra_information=[],
    )
    return bytes(STORE.serialize_cdr(reply, name))


def test_a_node_is_asked_for_a_type_that_is_not_known_and_asked_again_later() -> None:
    seen = graph()
    seen.came(PUBLISHER)
    assert seen.due(0.0) == []
    seen.came(OFFER)
    key = (
        "0/r1/arm/get_type_description/"
        f"type_description_interfaces::srv::dds_::GetTypeDescription_/{SERVICE_HASH}"
    )
    assert seen.due(1.0) == [TypeQuestion("shop/msg/Part", PART.hash, key)]
    assert seen.due(2.0) == []
    assert len(seen.due(1.0 + AGAIN)) == 1


def test_nobody_is_asked_for_what_is_known() -> None:
    known = Definitions()
    seen = graph(known)
    seen.came(PUBLISHER)
    seen.came(OFFER)
    known.add(PART)
    assert seen.due(1.0) == []
    assert seen.due(1.0 + AGAIN) == []


def test_a_service_that_is_gone_is_not_asked() -> None:
    seen = graph()
    seen.came(PUBLISHER)
    seen.came(OFFER)
    seen.went(OFFER)
    assert seen.due(1.0) == []
    seen.went("@ros2_lv/never/there")


def test_publishers_of_buffers_are_shown_a_subscription_once() -> None:
    seen = graph(Definitions())
    type, hash = "sensor_msgs/msg/Image", STORE.hash_rihs01("sensor_msgs/msg/Image")
    seen.came(token(EntityKind.PUBLISHER, "/cam", type, hash, "backends:cpu:"))
    (listen,) = seen.due(0.0)
    assert isinstance(listen, WantedSubscription)
    assert listen.key == f"0/cam/sensor_msgs::msg::dds_::Image_/{hash}/_buf_cpu"
    assert seen.due(1.0) == []


def test_a_type_is_learnt_from_a_reply_if_it_has_the_hash_that_was_asked_for() -> None:
    assert read_reply(replied(PART), PART.hash) == PART
    with pytest.raises(DecodeError, match="not RIHS01_00"):
        read_reply(replied(PART), "RIHS01_" + "0" * 64)
    with pytest.raises(DecodeError, match="no such type"):
        read_reply(replied(PART, successful=False), PART.hash)
    with pytest.raises(DecodeError, match="not a description"):
        read_reply(b"\0\1\0\0\1", PART.hash)


def test_a_question_is_written_as_ros_writes_it() -> None:
    name = "x/msg/Request"
    if name not in STORE.types:
        text = "string type_name\nstring type_hash\nbool include_type_sources\n"
        STORE.register(get_types_from_msg(text, name))
    asked = STORE.deserialize_cdr(write_request("shop/msg/Part", PART.hash), name)
    assert (asked.type_name, asked.type_hash) == ("shop/msg/Part", PART.hash)  # type: ignore[attr-defined]
    assert asked.include_type_sources is False  # type: ignore[attr-defined]
