"""What a storage remembers: the newest value of each key, whatever order the news came in."""

from __future__ import annotations

from zenlake.storage.newest import Held, Newest

__all__ = ["Held", "Newest"]
