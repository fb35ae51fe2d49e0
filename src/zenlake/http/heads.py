"""The headers of a request by name, read once."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any, Final

__all__ = ["has_body", "heads_of"]

KEPT: Final = "zenlake.heads"


def heads_of(scope: MutableMapping[str, Any]) -> dict[str, str]:
    """The headers of a request or WebSocket by name, in small letters; the first of each name.

    Args:
        scope: What an ASGI server says of the request; they are kept in it.
    """
    kept: dict[str, str] | None = scope.get(KEPT)
    if kept is None:
        kept = {}
        for name, value in scope["headers"]:
            kept.setdefault(name.decode("latin-1"), value.decode("latin-1"))
        scope[KEPT] = kept
    return kept


def has_body(heads: Mapping[str, str]) -> bool:
    """Whether a request of HTTP/1.1 has a body: it says its length, or that it comes in chunks."""
    return heads.get("content-length", "0") != "0" or "transfer-encoding" in heads
