"""What was recorded, back on the bus; and two recordings, compared.

import zenlake
from zenlake.replay import Replay, find

with zenlake.open() as session:
    Replay(session, find("robot/**", journal="flight"), prefix="ghost", speed=4.0).run()
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zenlake.replay.pace import MAX, Pace
    from zenlake.replay.player import Replay
    from zenlake.replay.sources import AnswerSource, RecordedSource, SampleSource, find

__all__ = ["MAX", "AnswerSource", "Pace", "RecordedSource", "Replay", "SampleSource", "find"]

# Imported when they are asked for: pace and commands need no pyarrow.
_HOMES = {
    "MAX": "pace",
    "AnswerSource": "sources",
    "Pace": "pace",
    "RecordedSource": "sources",
    "Replay": "player",
    "SampleSource": "sources",
    "find": "sources",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
