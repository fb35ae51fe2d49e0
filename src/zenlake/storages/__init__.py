"""Storages: what was published is there when somebody asks.

storage     one storage: a subscriber, a queryable, and the thread that writes its volume
service     the storages of a node, as its configuration names them
"""

from __future__ import annotations

from zenlake.storages.service import Storages, start
from zenlake.storages.storage import Storage

__all__ = ["Storage", "Storages", "start"]
