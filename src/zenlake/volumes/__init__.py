"""Where storages keep their values: memory, files, SQLite, and whatever is registered besides.

A volume only stores. Which value a key has is decided in `zenlake.storage`.

contract    what a volume is, and what it promises
registry    volumes by name: ours, and those of other packages
"""

from __future__ import annotations

from zenlake.volumes.contract import Capability, Option, Volume, VolumeError
from zenlake.volumes.registry import known_volumes, volume_class

__all__ = ["Capability", "Option", "Volume", "VolumeError", "known_volumes", "volume_class"]
