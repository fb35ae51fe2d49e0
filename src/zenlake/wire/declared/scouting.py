"""Who is there: two datagrams with an id space of their own."""

from __future__ import annotations

from zenlake.wire.declared.schema import ProtocolPage, identity, many, text, u8
from zenlake.wire.declared.transport import ROLE

PAGE = ProtocolPage("scouting", "Scouting messages", "1.x")


@PAGE.message(0x01)
class Scout:
    """Is anybody there? `what` says whom I look for: router 1, peer 2, client 4."""

    version = u8()
    identity = identity("what", 3, optional=True)


@PAGE.message(0x02, "L - Z")
class Hello:
    """I am, and this is where I listen."""

    version = u8()
    identity = identity("whatami", 2, legal=ROLE, names=ROLE)
    locators = many(text(8)).when("L")
