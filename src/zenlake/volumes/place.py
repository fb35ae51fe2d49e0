"""Where volumes on disk lie: below one root, as Eclipse Zenoh's do.

The root of the volume `fs` is `$ZENOH_BACKEND_FS_ROOT`, else `$ZENOH_HOME/zenoh_backend_fs`, else
`~/.zenoh/zenoh_backend_fs`; that of others has their name in it.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["folder_of", "root_of"]


def root_of(volume: str) -> Path:
    """The folder in which relative folders of a volume lie."""
    root = os.environ.get(f"ZENOH_BACKEND_{volume.upper()}_ROOT")
    if root:
        return Path(root)
    home = os.environ.get("ZENOH_HOME")
    return (Path(home) if home else Path.home() / ".zenoh") / f"zenoh_backend_{volume}"


def folder_of(volume: str, folder: object) -> Path:
    """The folder that an option names, from the volume's root if it is relative."""
    root = root_of(volume)
    return root if folder is None else root / str(folder)
