"""Storages: what was published is there for queries that come later.

intake      samples into its contents: the path that every put takes
storage     one storage: its subscriber, its values, and the thread that writes its volume
answers     its queryable: values, history, acknowledged puts
service     the storages of a node, as its configuration names them
"""

from __future__ import annotations

from zenlake.storage_manager.service import Storages, start
from zenlake.storage_manager.storage import Storage

__all__ = ["Storage", "Storages", "start"]
