"""A lake learns a type from the node that publishes it, over the network alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import zenoh

from tests.api.sessions import listening, where
from tests.ros2.test_graph import (
    OFFER,
    PART,
    PUBLISHER,
    SERVICE_HASH,
    SERVICE_TYPE,
    STORE,
    replied,
    token,
)
from tests.waiting import until
from zenlake.lake.decode.ros2_tables import LearntTypes
from zenlake.lake.service.ros2 import Ros2Service
from zenlake.lake.table.location import LakeLocation
from zenlake.ros2.attachment import read_attachment
from zenlake.ros2.names import wire_type
from zenlake.ros2.tokens import PREFIX, EntityKind, gid_of, parse_token

pytestmark = [pytest.mark.interop]

IMAGE = "sensor_msgs/msg/Image"
IMAGE_HASH = STORE.hash_rihs01(IMAGE)
CAMERA = token(EntityKind.PUBLISHER, "/r1/cam", IMAGE, IMAGE_HASH, "backends:cpu:")
BRIDGED = f"{PREFIX}/cd34/MP/r2§tf/tf2_msgs§msg§TFMessage/:1::"
KEY = f"0/r1/arm/get_type_description/{wire_type(SERVICE_TYPE)}/{SERVICE_HASH}"


def test_a_type_that_no_package_ships_is_learnt_from_its_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    types = LearntTypes(LakeLocation(tmp_path))
    learnt: list[str] = []
    with listening() as session:
        settings = zenoh.Config()
        settings.insert_json5("mode", '"client"')
        settings.insert_json5("connect/endpoints", f'["{where(session)}"]')
        settings.insert_json5("scouting/multicast/enabled", "false")
        with zenoh.open(settings) as robot:
            attached: list[bytes] = []

            def describe(query: zenoh.Query) -> None:
                assert query.attachment is not None
                attached.append(query.attachment.to_bytes())
                query.reply(KEY, replied(PART))

            service = robot.declare_queryable(KEY, describe, complete=True)
            tokens = [
                robot.liveliness().declare_token(one) for one in (PUBLISHER, OFFER, CAMERA, BRIDGED)
            ]
            # A publisher of buffers sends nothing until it sees a subscription that takes them.
            shown = robot.liveliness().declare_subscriber(
                f"{PREFIX}/0/*/*/*/MS/**", lambda sample: seen.append(str(sample.key_expr))
            )
            seen: list[str] = []
            watching = Ros2Service(session, types, learnt.append)
            try:
                until(lambda: bool(learnt), "the type is learnt")
                assert watching.problems() == ()
                until(lambda: bool(seen), "the publisher of images sees a subscription")
                until(lambda: "r2/tf" in types.bridged, "the topic behind a bridge is known")
                until(lambda: watching.endpoints == len(tokens), "all endpoints are known")
                assert shown is not None
                monkeypatch.setattr("zenlake.ros2.graph.MOST_ENDPOINTS", 3)
                more = robot.liveliness().declare_token(
                    token(EntityKind.PUBLISHER, "/r1/more", "shop/msg/Part", PART.hash)
                )
                until(lambda: bool(watching.problems()), "one token too many is told")
                assert "1 tokens" in watching.problems()[0]
                assert more is not None
            finally:
                watching.close()
            assert len(tokens) == 4
            assert service is not None
    assert learnt == ["shop/msg/Part"]
    assert types.definitions.find("shop/msg/Part", PART.hash) == PART
    said = read_attachment(attached[0])
    assert said is not None
    assert said.sequence_number == 1
    # It survives, and so does the name of the publisher.
    again = LearntTypes(LakeLocation(tmp_path))
    assert again.definitions.find("shop/msg/Part", PART.hash) == PART
    assert again.nodes[gid_of(PUBLISHER).hex()][0] == "/r1/arm"
    assert again.bridged == {"r2/tf": ("tf2_msgs/msg/TFMessage", "reliable volatile keep_last(1)")}
    wanted = parse_token(seen[0])
    assert wanted is not None
    assert (wanted.topic, wanted.type, wanted.hash) == ("/r1/cam", IMAGE, IMAGE_HASH)
    assert (wanted.node, wanted.backends) == ("/zenlake_lake", "backends:cpu:")
