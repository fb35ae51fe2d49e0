"""Where storages keep their values: memory, files, databases, and whatever is registered besides.

A volume only stores. Which value a key has is decided in `zenlake.newest`.

contract    what a volume is, and what it promises
registry    volumes by name: ours, and those of other packages
memory · fs · sqlite · rocksdb · postgres · redis · s3      ours
records     entries as bytes, for volumes that keep keys and bytes
refusals    writes a batch without the records that a volume can never keep
trimming    which samples of a history must go
"""

from __future__ import annotations

from zenlake.volumes.contract import (
    Capability,
    Option,
    RecordsRefused,
    Volume,
    VolumeError,
    VolumeUnreachable,
)
from zenlake.volumes.registry import known_volumes, volume_class

__all__ = [
    "Capability",
    "Option",
    "RecordsRefused",
    "Volume",
    "VolumeError",
    "VolumeUnreachable",
    "known_volumes",
    "volume_class",
]
