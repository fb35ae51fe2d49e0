"""What is to blame when a part ends."""

from __future__ import annotations

from zenlake.lake.run import SPARK_ENDED
from zenlake.supervise.household import blamed


def test_a_lake_whose_java_has_ended_was_not_told_anything_wrong() -> None:
    # It ends with the code of a refusal, after which one waits for as long as one ever does.
    said = f"ended with 2: {SPARK_ENDED}"
    assert blamed("lake", said, True) == ("ended because Spark's Java did", False)


def test_settings_are_to_blame_for_a_refusal() -> None:
    said = "ended with 2: lake.json5: there is no 'tabels'"
    assert blamed("lake", said, True) == (said, True)
    said = "ended with 2: tcp/127.0.0.1:7447: Connection refused"
    assert blamed("router", said, True) == (said, True)
