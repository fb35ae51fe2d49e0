"""Processes that write a volume and die at the n-th operation on a disk, for every n.

    LD_PRELOAD=dying_disk.so python -m tests.volumes.dying KIND FOLDER dying_disk.so SEED

Every other one is killed; for those between, and with the next seed for the others, the power
fails, and what was not synced may be gone. Leaves the folder `FOLDER/<n>` of each of them, and
prints how many batches each was told to be written before it died.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import json
import os
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from tests.newest.oracle import Said
from zenlake.newest import Contents, Value
from zenlake.storage_manager.service import checked_options
from zenlake.volumes import Volume, volume_class

KEYS = ["a", "a/below", "b", "c/d", "x" * 300, "a/**", "**"]
#: How many batches are written, and how many updates each has.
BATCHES = 1 + int(os.environ.get("ZENLAKE_ROUNDS", "1"))
UPDATES = 4


def opened_in(kind: str, folder: Path, *, fsync: bool) -> Volume:
    """The volume of a kind, for the storage `s`."""
    made = volume_class(kind)
    return made("s", checked_options(kind, made, {"dir": str(folder), "fsync": fsync}))


def plan(seed: int) -> list[list[Said]]:
    """What is said before each batch is written."""
    chance = random.Random(seed)
    times = itertools.count(1 << 62)
    return [
        [
            Said(chance.choice(KEYS), next(times), b"\x01", chance.choice(["v", "w", "", None]))
            for _ in range(UPDATES)
        ]
        for _ in range(BATCHES)
    ]


def tell(contents: Contents, one: Said) -> None:
    if one.value is None:
        contents.delete(one.key, one.time, one.id)
    else:
        contents.put(one.key, one.time, one.id, Value(one.value.encode()))


def run(
    kind: str, folder: Path, batches: list[list[Said]], told: int, arm: Callable[[], None]
) -> None:
    """Write batches; a byte to `told` for each that the volume has."""
    volume = opened_in(kind, folder, fsync=True)
    contents = Contents(keeps=True)
    contents.load(volume.entries(), volume.wide())
    arm()
    for said in batches:
        for one in said:
            tell(contents, one)
        batch = contents.take()
        volume.write(batch)
        contents.written(batch)
        os.write(told, b".")
    volume.close()


def in_child(
    kind: str, folder: Path, batches: list[list[Said]], disk: ctypes.CDLL, at: int, seed: int
) -> tuple[int, int]:
    """Write in a process that dies; gives its exit code, and the number of batches it was sure of.

    A volume never sees a fork: it is opened and ends in one process.
    """
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        arm = functools.partial(disk.arm, ctypes.c_long(at), ctypes.c_ulong(seed))
        run(kind, folder, batches, theirs, arm)
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        sure = len(pipe.read())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), sure


def main() -> None:
    kind, folder, disk = sys.argv[1], Path(sys.argv[2]), ctypes.CDLL(sys.argv[3])
    seed = int(sys.argv[4])
    batches = plan(seed)
    # The first one is there, safely; the others are written while it happens.
    assert in_child(kind, folder / "0", batches[:1], disk, 0, 0) == (0, 1)
    sure = [1]
    for step in range(1, 1000):
        shutil.copytree(folder / "0", folder / str(step))
        forgets = seed * 1000 + step if (seed + step) % 2 else 0
        code, written = in_child(kind, folder / str(step), batches[1:], disk, step, forgets)
        assert code in (0, 9), code
        sure.append(1 + written)
        if code == 0:
            print(json.dumps(sure))
            return
    sys.exit("it never came to its end")


if __name__ == "__main__":
    main()
