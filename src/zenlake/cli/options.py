"""The options that several commands have, each declared once."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from zenlake.values import CongestionControl
    from zenlake.values import Priority as Lane


class Priority(StrEnum):
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


class Congestion(StrEnum):
    """What happens when a queue on the way is full."""

    DROP = "drop"
    BLOCK = "block"
    BLOCK_FIRST = "block_first"

    def control(self) -> CongestionControl:
        """The same, for the API."""
        from zenlake.values import CongestionControl

        return CongestionControl[self.name]


Key = Annotated[str, typer.Option("-k", "--key", metavar="KEYEXPR", help="The key expression.")]
Payload = Annotated[
    str,
    typer.Option(
        "-p",
        "--payload",
        "-v",
        "--value",
        metavar="TEXT",
        help="The payload; - reads the standard input.",
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
        help="A payload to send with the question; - reads the standard input.",
        show_default=False,
    ),
]
EncodingName = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="What the payload is, e.g. application/json.",
        show_default=False,
    ),
]
Attachment = Annotated[
    str | None,
    typer.Option(
        "-a", "--attach", metavar="TEXT", help="What to add beside the payload.", show_default=False
    ),
]
Urgency = Annotated[Priority, typer.Option("--priority", help="How urgent it is.")]
WhenFull = Annotated[
    Congestion, typer.Option("--congestion", help="What to do when a queue is full.")
]
Express = Annotated[bool, typer.Option("--express", help="Send at once, do not wait for company.")]
Count = Annotated[
    int | None,
    typer.Option("-n", "--iter", metavar="COUNT", min=1, help="Stop after so many."),
]
Every = Annotated[
    float,
    typer.Option("-i", "--interval", metavar="SECONDS", min=0.05, help="How often it is told."),
]
Timeout = Annotated[
    float,
    typer.Option("-o", "--timeout", metavar="SECONDS", min=0, help="How long to wait for answers."),
]


def payload_of(told: str) -> bytes:
    """The bytes that `-p` means: its text, or all of the standard input."""
    return sys.stdin.buffer.read() if told == "-" else told.encode()
