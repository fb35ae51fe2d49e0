"""Services that a node runs beside carrying messages."""

import re
from typing import Annotated, Literal

from zenlake.config.declare import REQUIRED, NonEmpty, key, section
from zenlake.config.grammar import KeyText, Namespace
from zenlake.config.shape import Real, TextShape, Whole

__all__ = ["JournalService", "RetainedKeys", "XrceService"]

_BY = "zenlake.journal.service.options_of"


def _fsync(text: str) -> str:
    if text not in ("batch", "never") and not re.fullmatch(r"[1-9][0-9]*(ms|s)", text):
        raise ValueError("it is no such policy")
    return text


@section
class RetainedKeys:
    """How long values of some keys stay in a journal."""

    keys: KeyText = key(REQUIRED, "An expression that includes the keys.", honoured_by=_BY)
    age: Annotated[float, Real("seconds", 0.001)] = key(
        REQUIRED, "How long they are kept.", honoured_by=_BY
    )


@section
class JournalService:
    """A journal that the node records."""

    name: Namespace = key(
        REQUIRED, "What it is called: it answers under `@journal/<name>`.", honoured_by=_BY
    )
    dir: str = key(REQUIRED, "The folder it is written to.", honoured_by=_BY)
    key_exprs: Annotated[tuple[KeyText, ...], NonEmpty()] = key(
        REQUIRED, "What is recorded.", honoured_by=_BY
    )
    partitions: Annotated[int, Whole("", 1, 1024)] | None = key(
        None,
        "In how many parts rows are kept, when the journal is created; null means 1, or as it is.",
        honoured_by=_BY,
    )
    fsync: Annotated[str, TextShape("batch, never, or a time like 50ms", _fsync)] = key(
        "50ms", "When rows become durable.", honoured_by=_BY
    )
    segment_bytes: Annotated[int, Whole("bytes", 1)] = key(
        128 << 20, "How large a segment grows.", honoured_by=_BY
    )
    segment_age: Annotated[float, Real("seconds", 0.001)] = key(
        3600.0, "How long a segment grows.", honoured_by=_BY
    )
    retain_bytes: Annotated[int, Whole("bytes", 1)] | None = key(
        None, "How much is kept; null means all.", honoured_by=_BY
    )
    retain_age: Annotated[float, Real("seconds", 0.001)] | None = key(
        None, "How long it is kept; null means for ever.", honoured_by=_BY
    )
    hold_bytes: Annotated[int, Whole("bytes", 1)] | None = key(
        None,
        "How much more is kept for a lake that has not read it yet (`readers*.json` in the folder "
        "say how far each is); null means nothing.",
        honoured_by=_BY,
    )
    retain: tuple[RetainedKeys, ...] = key(
        (),
        "Keys whose values are kept for a shorter time; the first rule that includes a key "
        "decides. What a lake has not read yet (`readers*.json`) is left alone.",
        honoured_by=_BY,
    )
    on_full: Literal["block", "drop"] = key(
        "block",
        "When the disk is full, or takes nothing for another reason that may pass: hold "
        "publishers up, or drop samples and count them.",
        honoured_by=_BY,
    )
    answer: bool = key(True, "Whether questions about the keys are answered.", honoured_by=_BY)
    answer_time: bool = key(
        True, "Whether questions about the past of the keys are answered.", honoured_by=_BY
    )
    complete: bool = key(
        False, "Whether others are told that nobody else need be asked.", honoured_by=_BY
    )
    heal: bool = key(
        True,
        "Whether publishers are asked for samples that did not come, and those that keep their "
        "newest samples (`transient_local` in ROS 2) for what they said before.",
        honoured_by=_BY,
    )


_XRCE = "zenlake.xrce_io.service.serving"


def _hex(text: str) -> str:
    bytes.fromhex(text)
    return text


@section
class XrceService:
    """A broker of the 2018 protocol for constrained devices, bridged with this node."""

    listen: tuple[str, ...] = key(
        (),
        "Where devices may open sessions: `udp/…`, `tcp/…`, `serial/…`; none means no broker.",
        honoured_by=_XRCE,
    )
    scouting: str = key(
        "",
        "The multicast group in which it is found, `239.255.0.1:7447` by custom; empty: none.",
        honoured_by=_XRCE,
    )
    interface: str = key("auto", "The network interfaces of that group.", honoured_by=_XRCE)
    prefix: str = key("", "Put before every key of the devices.", honoured_by=_XRCE)
    session_lease: Annotated[float, Real("seconds", 0.0)] = key(
        10.0, "How long the broker may be silent over datagrams; 0 means for ever.",
        honoured_by=_XRCE,
    )  # fmt: skip
    mtu: Annotated[int, Whole("bytes", 20, 65000)] = key(
        1400, "The largest packet over datagrams.", honoured_by=_XRCE
    )
    authentication: Annotated[str, TextShape("bytes in hexadecimal", _hex)] = key(
        "", "What devices must show in property 12; empty: nothing.", honoured_by=_XRCE
    )
    username: str = key(
        "",
        "Who devices are to the rules of `access_control`; empty: somebody without a name.",
        honoured_by=_XRCE,
    )
    persistent: str = key(
        "",
        "The file with the values of persistent resources; empty keeps them in memory.",
        honoured_by=_XRCE,
    )
    deletes: Literal["drop", "empty"] = key(
        "drop",
        "What a deletion is to devices, which know none: nothing, or an empty payload.",
        honoured_by=_XRCE,
    )
    habits: tuple[Literal["whole", "ocaml", "endless", "eager", "zhe"], ...] = key(
        (),
        "What peers do otherwise than the paper says, where behaviour does not show it.",
        honoured_by=_XRCE,
    )
    max_sessions: Annotated[int, Whole("sessions", 1)] = key(
        4096, "How many devices there may be.", honoured_by=_XRCE
    )
    max_declarations: Annotated[int, Whole("declarations", 1)] = key(
        4096, "How many of each kind one device may declare.", honoured_by=_XRCE
    )
    queue_bytes: Annotated[int, Whole("bytes", 1024)] = key(
        1 << 20, "How much may wait to be sent to one device.", honoured_by=_XRCE
    )
    store_depth: Annotated[int, Whole("samples", 1)] = key(
        16, "How many samples of a resource wait for a device that pulls.", honoured_by=_XRCE
    )
    store_bytes: Annotated[int, Whole("bytes", 1)] = key(
        1 << 20, "How much waits for one subscription that pulls.", honoured_by=_XRCE
    )
