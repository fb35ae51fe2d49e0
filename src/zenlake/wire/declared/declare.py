"""What a node has and knows: the nine bodies of a Declare message."""

from __future__ import annotations

from zenlake.wire.declared import zenoh
from zenlake.wire.declared.schema import (
    ProtocolPage,
    ext,
    flag,
    flag_byte,
    rest,
    struct,
    text,
    vle,
    z16,
    z32,
)

PAGE = ProtocolPage("declare", "Declarations", "1.x", (zenoh.PAGE,))


@PAGE.structure
class KeyExt:
    """The key of an undeclared entity, for nodes that know it by its key only."""

    flags = flag_byte("N M")
    scope = z16()
    suffix = rest(utf8=True).when("N")
    sender_mapping = flag("M")


@PAGE.message(0x00, "N - Z")
class DeclareKeyExpr:
    """From now on `id` stands for this key expression; the scope is always the sender's."""

    id = z16()
    scope = z16()
    suffix = text(16).when("N")


@PAGE.message(0x01)
class UndeclareKeyExpr:
    """The id means nothing any more."""

    id = z16()


@PAGE.message(0x02, "N M Z")
class DeclareSubscriber:
    """The sender wants the samples of a key expression."""

    id = z32(wrap=True)
    scope = z16()
    suffix = text(16).when("N")
    sender_mapping = flag("M", default=True)
    filter = ext(0x4E, rest()).says("zenlake's own: only those that this is true of")


@PAGE.message(0x03)
class UndeclareSubscriber:
    """The sender does not want them any more."""

    id = z32(wrap=True)
    key = ext(0x5F, struct("KeyExt"))


@PAGE.message(0x04, "N M Z")
class DeclareQueryable:
    """The sender replies to queries about a key expression."""

    id = z32(wrap=True)
    scope = z16()
    suffix = text(16).when("N")
    sender_mapping = flag("M", default=True)
    info = ext(0x21, vle(24, wrap=True), default=0).says("distance << 8 | complete")


@PAGE.message(0x05)
class UndeclareQueryable:
    """The sender does not reply to them any more."""

    id = z32(wrap=True)
    key = ext(0x5F, struct("KeyExt"))


@PAGE.message(0x06, "N M Z")
class DeclareToken:
    """Something of the sender is alive."""

    id = z32(wrap=True)
    scope = z16()
    suffix = text(16).when("N")
    sender_mapping = flag("M", default=True)


@PAGE.message(0x07)
class UndeclareToken:
    """It is not alive any more."""

    id = z32(wrap=True)
    key = ext(0x5F, struct("KeyExt"))


@PAGE.message(0x1A)
class DeclareFinal:
    """That was all that there is now."""
