"""A process that writes a batch into a volume and dies at an operation on the way.

    LD_PRELOAD=dying_disk.so python -m tests.volumes.mortal dying_disk.so

reads requests, and lets a child of its own write each: one that is killed, or whose power fails so
that what was not synced may be gone. For servers elsewhere an operation is what is sent to them.
"""

from __future__ import annotations

import copyreg
import ctypes
import functools
import os
import pickle
import signal
import struct
import subprocess
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final

from zenlake.newest import Batch, Value
from zenlake.volumes import volume_class

#: Constants with which objects of s3 are merged and written anew all the time.
MERGING: Final = {"_MERGE": 2, "_WORTH": 0}
_LENGTH: Final = struct.Struct("<I")

copyreg.pickle(
    Value, lambda value: (Value, (value.payload, value.encoding_id, value.schema, value.attachment))
)


class Mortal:
    """Writes batches in processes that die."""

    def __init__(self, disk: Path) -> None:
        """With the library that ends a process at an operation."""
        self._disk = disk
        self._process: subprocess.Popen[bytes] | None = None

    def write(
        self, kind: str, options: Mapping[str, object], batch: Batch, at: int, seed: int
    ) -> bool:
        """Write a batch and die at an operation; tells whether the volume said that it has it.

        With a seed the power fails: of each file what was not synced is there or gone.
        """
        process = self._process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            _send(process.stdin, (kind, dict(options), batch, at, seed))
            code, sure = _receive(process.stdout)
        except BaseException:
            # Time ran out. Its answer would be taken for that to the next request.
            self._process = None
            os.killpg(process.pid, signal.SIGKILL)
            process.stdin.close()
            process.stdout.close()
            process.wait()
            raise
        assert code in (0, 9), code
        return bool(sure)

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.volumes.mortal", self._disk],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "LD_PRELOAD": str(self._disk)},
            start_new_session=True,  # with it ends the child that writes
        )

    def close(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.communicate(timeout=10)


def _send(file: IO[bytes], message: tuple[object, ...]) -> None:
    data = pickle.dumps(message)
    file.write(_LENGTH.pack(len(data)) + data)
    file.flush()


def _receive(file: IO[bytes]) -> tuple[object, ...]:
    (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
    message: tuple[object, ...] = pickle.loads(file.read(length))
    return message


def _in_child(
    disk: ctypes.CDLL, kind: str, options: dict[str, object], batch: Batch, at: int, seed: int
) -> tuple[int, bool]:
    """How a child ended, and whether it was sure before."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        try:
            volume = volume_class(kind)("s", options)
            list(volume.entries())
            disk.arm(ctypes.c_long(at), ctypes.c_ulong(seed))
            volume.write(batch)
            os.write(theirs, b".")
            volume.close()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        sure = bool(pipe.read())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), sure


@functools.cache
def _prepare_s3() -> None:
    """Have objects merged all the time, and what boto3 reads of its services in memory."""
    from zenlake.volumes import s3, s3_bucket

    vars(s3).update(MERGING)
    s3_bucket._session().client("s3", region_name="us-east-1").close()


def main() -> None:
    disk = ctypes.CDLL(sys.argv[1])
    requests, replies = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            kind, options, batch, at, seed = _receive(requests)
        except struct.error:
            return  # nobody asks any more
        assert isinstance(kind, str)
        assert isinstance(options, dict)
        assert isinstance(batch, Batch)
        assert isinstance(at, int)
        assert isinstance(seed, int)
        volume_class(kind)  # imported once, and not by every child
        if kind == "s3":
            _prepare_s3()
        _send(replies, _in_child(disk, kind, options, batch, at, seed))


if __name__ == "__main__":
    main()
