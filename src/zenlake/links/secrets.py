"""Files with secrets, which only their owner may read."""

from __future__ import annotations

import os
import stat

from zenlake.errors import ConfigError

__all__ = ["demand_secret"]


def demand_secret(where: str, file: str) -> None:
    """Refuse a file of passwords or private keys that everybody on this machine can read.

    `where`: the key of the configuration that names it. Raises `OSError` if it is not there.
    """
    if os.name != "posix":
        return
    mode = os.stat(file).st_mode
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        raise ConfigError(
            f"{where}: everybody on this machine can read {file}, and it holds secrets; "
            f"run: chmod 600 {file}"
        )
