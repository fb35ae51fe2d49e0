"""What was recorded, back on the bus; and two recordings, compared.

import zenlake
from zenlake.replay import Replay, find

with zenlake.open() as session:
    Replay(session, find("robot/**", journal="flight"), prefix="ghost", speed=4.0).run()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from zenlake.lazy import lazy_names

if TYPE_CHECKING:
    from zenlake.replay.pace import MAX, Pace
    from zenlake.replay.player import Replay
    from zenlake.replay.sources import AnswerSource, RecordedSource, SampleSource, find

__all__ = ["MAX", "AnswerSource", "Pace", "RecordedSource", "Replay", "SampleSource", "find"]

# Imported when they are asked for: pace and commands need no pyarrow.
__getattr__ = lazy_names(
    __name__,
    {
        "MAX": "pace",
        "AnswerSource": "sources",
        "Pace": "pace",
        "RecordedSource": "sources",
        "Replay": "player",
        "SampleSource": "sources",
        "find": "sources",
    },
)
