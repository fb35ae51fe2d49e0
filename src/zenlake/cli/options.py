"""The options that several commands have, each declared once."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from zenlake.values import CongestionControl
    from zenlake.values import Priority as Lane


class PriorityChoice(StrEnum):
    """How urgent it is."""

    REAL_TIME = "real_time"
    INTERACTIVE_HIGH = "interactive_high"
    INTERACTIVE_LOW = "interactive_low"
    DATA_HIGH = "data_high"
    DATA = "data"
    DATA_LOW = "data_low"
    BACKGROUND = "background"

    def lane(self) -> Lane:
        """The same, for the API."""
        from zenlake.values import Priority as Lane

        return Lane[self.name]


class CongestionChoice(StrEnum):
    """What happens when a queue on the way is full."""

    DROP = "drop"
    BLOCK = "block"
    BLOCK_FIRST = "block_first"

    def control(self) -> CongestionControl:
        """The same, for the API."""
        from zenlake.values import CongestionControl

        return CongestionControl[self.name]


def _encodings(incomplete: str) -> list[str]:
    """The encodings whose names begin like that, for a shell."""
    from zenlake.values.encoding import ENCODING_NAMES

    return [name for name in ENCODING_NAMES if name.startswith(incomplete)]


Key = Annotated[
    str,
    typer.Option("-k", "--key", metavar="KEYEXPR", help="The key expression, e.g. robot/*/pose."),
]
Payload = Annotated[
    str,
    typer.Option(
        "-p",
        "--payload",
        "-v",
        "--value",
        metavar="TEXT",
        help="The payload; - reads it from the standard input.",
    ),
]
OptionalPayload = Annotated[
    str | None,
    typer.Option(
        "-p",
        "--payload",
        "-v",
        "--value",
        metavar="TEXT",
        help="A payload to send with the query; - reads the standard input.",
        show_default=False,
    ),
]
EncodingName = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="The encoding of the payload, e.g. application/json.",
        show_default=False,
        autocompletion=_encodings,
    ),
]
Attachment = Annotated[
    str | None,
    typer.Option(
        "-a",
        "--attach",
        metavar="TEXT",
        help="An attachment beside the payload.",
        show_default=False,
    ),
]
Urgency = Annotated[
    PriorityChoice,
    typer.Option(
        "--priority",
        metavar="PRIORITY",
        help="The priority: real_time, interactive_high, interactive_low, data_high, data, "
        "data_low or background.",
    ),
]
WhenFull = Annotated[
    CongestionChoice,
    typer.Option(
        "--congestion",
        metavar="POLICY",
        help="When a queue on the way is full: block, block_first or drop.",
    ),
]
Express = Annotated[bool, typer.Option("--express", help="Send at once: no batching.")]
Count = Annotated[
    int | None,
    typer.Option("-n", "--iter", metavar="COUNT", min=1, help="Stop after this many."),
]
Every = Annotated[
    float,
    typer.Option(
        "-i", "--interval", metavar="SECONDS", min=0.05, help="The interval between two reports."
    ),
]
Timeout = Annotated[
    float,
    typer.Option("-o", "--timeout", metavar="SECONDS", min=0, help="The timeout for replies."),
]
RetainSize = Annotated[
    str | None,
    typer.Option(
        "--retain-size",
        metavar="SIZE",
        help="How much the journal keeps, e.g. 100GB. If not said, `record` keeps all, `up` a "
        "fifth of the disk.",
        show_default=False,
    ),
]
RetainAge = Annotated[
    str | None,
    typer.Option(
        "--retain-age",
        metavar="TIME",
        help="How long the journal keeps rows, e.g. 30d.",
        show_default=False,
    ),
]
Retain = Annotated[
    list[str] | None,
    typer.Option(
        "--retain",
        metavar="KEYEXPR=TIME",
        help="Keep values of these keys only this long in the journal, e.g. 'camera/**=2h'. "
        "Repeatable.",
        show_default=False,
    ),
]
Fsync = Annotated[
    str,
    typer.Option(
        "--fsync",
        metavar="POLICY",
        help="When rows become durable: batch, never, or a time like 50ms.",
    ),
]


def payload_of(text: str) -> bytes:
    """The bytes that `-p` means: its text, or all of the standard input."""
    return sys.stdin.buffer.read() if text == "-" else bytes_of(text)


def bytes_of(text: str) -> bytes:
    """The bytes that a word of the command line was, also where they are not UTF-8."""
    return text.encode("utf-8", "surrogateescape")
