"""The admin space: a node shows itself under `@/<zid>/<whatami>`, and takes changes there.

documents   which records match a query, and what is in them
loopback    whether a link stays within this machine
reload      what can be changed while a node runs
space       the queryable and the subscriber, on a thread of their own
"""

from __future__ import annotations

from zenlake.admin.space import AdminSpace, start

__all__ = ["AdminSpace", "start"]
