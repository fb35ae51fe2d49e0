"""What a replay can be told: over the bus as JSON, or with a key of the keyboard.

pause        {"do": "resume"}        {"do": "step", "count": 5}        {"do": "speed", "to": 4}
{"do": "seek", "to": "2026-01-31T12:00:00Z"}       {"do": "seek", "to": "+10s"}
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from zenlake.errors import LocalError, SelectorError
from zenlake.keys import ResolvedRange
from zenlake.keys.time_range import Instant, moment_of
from zenlake.replay.pace import speed_of

__all__ = ["KEYS_HELP", "Command", "command_of", "moment_at", "range_at", "typed"]

NAMES: Final = ("pause", "resume", "toggle", "step", "seek", "speed", "faster", "slower", "stop")
LONGEST: Final = 4096
MOST_STEPS: Final = 1_000_000

KEYS_HELP: Final = "space: pause · s: step · ← →: 10 s back, on · + −: speed · q: end"
#: What the keyboard sends.
TYPED: Final = {
    b" ": ("toggle", None),
    b"s": ("step", 1),
    b".": ("step", 1),
    b"\x1b[C": ("seek", 10_000_000_000),
    b"\x1b[D": ("seek", -10_000_000_000),
    b"+": ("faster", None),
    b"=": ("faster", None),
    b"-": ("slower", None),
    b"q": ("stop", None),
    b"\x04": ("stop", None),
}


@dataclass(frozen=True, slots=True)
class Command:
    """One thing that a replay is told."""

    do: str
    #: step: how many samples. seek: nanoseconds, since 1970 or, if `relative`, from where it is.
    #: speed: how many times faster.
    amount: float = 0
    relative: bool = False


def command_of(payload: bytes) -> Command:
    """The command in a payload; raises `LocalError` with what is wrong with it."""
    if len(payload) > LONGEST:
        raise LocalError(f"a command of {len(payload)} bytes; at most {LONGEST}")
    try:
        text = payload.decode().strip()
        order: Any = json.loads(text) if text.startswith(("{", '"')) else text
    except ValueError as error:
        raise LocalError(f'no command: {error}; write {{"do": "pause"}}') from error
    if isinstance(order, str):
        order = {"do": order}
    if not isinstance(order, dict):
        raise LocalError('a command is an object such as {"do": "pause"}')
    do = order.get("do")
    if do not in NAMES:
        raise LocalError(f"{json.dumps(do)} is no command; there are {', '.join(NAMES)}")
    if do == "step":
        return Command(do, _count(order.get("count", 1)))
    if do == "speed":
        return Command(do, speed_of(order.get("to") or order.get("speed") or ""))
    if do == "seek":
        return _seek(order.get("to"))
    return Command(do)


def _count(count: object) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or not 0 < count <= MOST_STEPS:
        raise LocalError(f"'count' is {json.dumps(count)}; write how many samples, from 1")
    return count


def _seek(target: object) -> Command:
    if isinstance(target, int) and not isinstance(target, bool):
        return Command("seek", target)
    if not isinstance(target, str) or not target:
        raise LocalError(
            f"'to' is {json.dumps(target)}; write a time like \"2026-01-31T12:00:00Z\", or a "
            'distance like "+10s" or "-1m"'
        )
    if target[0] in "+-":
        return Command("seek", moment_of(f"now({target})").resolve(0), relative=True)
    moment = moment_of(target)
    if not isinstance(moment, Instant):
        raise LocalError(
            f"'{target}': a replay has another time than now; write \"+10s\" or a date"
        )
    return Command("seek", moment.ns)


def typed(keys: bytes) -> list[Command]:
    """What keys of the keyboard mean; those that mean nothing are passed over."""
    commands = []
    while keys:
        word = next((word for word in TYPED if keys.startswith(word)), None)
        if word is None:
            keys = keys[1:]
            continue
        do, amount = TYPED[word]
        commands.append(Command(do, amount or 0, relative=do == "seek"))
        keys = keys[len(word) :]
    return commands


def moment_at(text: str, now_ns: int) -> int:
    """A moment on the command line, in nanoseconds: as `_time` has it, `-10m`, or a day.

    Seconds, and the whole time of day, may be left out.
    """
    moment = text.strip()
    if moment[:1] in ("-", "+"):
        moment = f"now({moment})"
    elif len(moment) == 10 and moment.count("-") == 2:
        moment += "T00:00:00Z"
    elif len(moment.rstrip("Zz")) == 16:
        moment = moment.rstrip("Zz") + ":00Z"
    try:
        return moment_of(moment).resolve(now_ns)
    except SelectorError as error:
        raise SelectorError(
            f"'{text}' is no time ({error}); -10m and 2026-01-31T12:00 do too"
        ) from error


def range_at(start: str | None, end: str | None, now_ns: int) -> ResolvedRange:
    """The range between two moments of the command line; the end is not in it."""
    first = None if start is None else moment_at(start, now_ns)
    last = None if end is None else moment_at(end, now_ns)
    if first is not None and last is not None and last <= first:
        raise LocalError(f"nothing lies between {start} and {end}: the end must be later")
    return ResolvedRange(first, last, True, last is None)
