"""A disk in memory that is as bad as a disk may be.

It tells what a program sees from what would be there after a loss of power. Bytes survive from
`fsync` on, names from the `sync` of their folder on; everything since then may be there, or not,
or in part, or as zeros, in any combination that the rules of POSIX allow.
"""

from __future__ import annotations

import ctypes
import errno
import os
import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from zenlake.errors import JournalLocked
from zenlake.journal.disk.direct import PAGE as DIRECT
from zenlake.journal.disk.direct import DirectFile
from zenlake.journal.disk.files import File

#: What a disk writes at once; what was written together is there or not sector by sector.
SECTOR = 512


class PowerCut(BaseException):
    """The machine stops here. Not an `Exception`: no program catches it."""


class Inode:
    """A file apart from its name: bytes as they are seen, and as they survive."""

    def __init__(self, data: bytes = b"") -> None:
        self.seen = bytearray(data)
        self.safe = bytes(data)
        #: How long the file was at most since it was synced: it may be found that long again.
        self.longest = 0

    def survive(self, chance: random.Random | None) -> bytes:
        """The bytes after the power is back; without chance nothing unsynced is left."""
        if chance is None:
            return self.safe
        seen = bytes(self.seen)
        if (seen == self.safe and self.longest <= len(seen)) or chance.random() < 0.25:
            return seen
        if chance.random() < 0.25:
            return self.safe
        # The length may be any that the file had; pages of it may never have been written.
        low, high = sorted((len(self.safe), len(seen)))
        length = chance.randint(low, max(high, self.longest))
        result = bytearray(length)
        for start in range(0, length, SECTOR):
            whole = seen if chance.random() < 0.6 else self.safe
            page = whole[start : min(start + SECTOR, length)]
            result[start : start + len(page)] = page
        same = min(length, low)
        if seen[:same] == self.safe[:same]:
            result[:same] = seen[:same]  # what nobody wrote over does not change
        return bytes(result)


class DiskFile:
    """A file that is open for appending."""

    def __init__(self, disk: Disk, inode: Inode) -> None:
        self._disk = disk
        self._inode = inode

    def write(self, parts: Sequence[Any]) -> None:
        for part in parts:
            data = bytes(part)
            self._disk.suffer("write")
            room = self._disk.room()
            cut = self._disk.step()
            if cut:
                self._inode.seen += data[: len(data) // 2]
                raise PowerCut
            self._inode.seen += data[:room]
            if len(data) > room:
                raise OSError(errno.ENOSPC, "No space left on device")

    def truncate(self, size: int) -> None:
        self._disk.operate()
        del self._inode.seen[size:]

    def fsync(self) -> None:
        if self._disk.broken:
            raise OSError(errno.EIO, "Input/output error")
        self._disk.operate()
        self._inode.safe = bytes(self._inode.seen)
        self._inode.longest = 0

    def close(self) -> None:
        pass


class DiskPages:
    """A file that is written in whole pages, each of which may be all that is left of a write."""

    def __init__(self, disk: Disk, inode: Inode) -> None:
        self._disk = disk
        self._inode = inode
        self._file = DiskFile(disk, inode)

    def size(self) -> int:
        return len(self._inode.seen)

    def read(self, into: memoryview, position: int) -> None:
        _check_pages(into, position)
        found = self._inode.seen[position : position + len(into)]
        into[: len(found)] = found

    def write(self, data: memoryview, position: int) -> int:
        _check_pages(data, position)
        assert position <= len(self._inode.seen), "there would be a hole"
        taken = bytes(data)
        # Written over what is there, it takes no room.
        room = self._disk.room() + len(self._inode.seen) - position
        cut = self._disk.step()
        if cut:
            taken = taken[: len(taken) // 2 // SECTOR * SECTOR]
        elif room < len(taken):
            taken = taken[: room // DIRECT * DIRECT]
            if not taken:
                raise OSError(errno.ENOSPC, "No space left on device")
        self._inode.seen[position : position + len(taken)] = taken
        self._inode.longest = max(self._inode.longest, len(self._inode.seen))
        if cut:
            raise PowerCut
        return len(taken)

    def truncate(self, size: int) -> None:
        self._file.truncate(size)

    def fsync(self) -> None:
        self._file.fsync()

    def close(self) -> None:
        pass


def _check_pages(data: memoryview, position: int) -> None:
    """What a disk demands of who writes to it directly."""
    address = ctypes.addressof(ctypes.c_char.from_buffer(data))
    assert address % DIRECT == position % DIRECT == len(data) % DIRECT == 0


class Disk:
    """The files of one machine; `fuse` is how many more operations it performs."""

    def __init__(self, capacity: int | None = None) -> None:
        self.names: dict[str, Inode] = {}
        self.folders: set[str] = {""}
        self.safe_names: dict[str, Inode] = {}
        self.safe_folders: set[str] = {""}
        self.pending: list[tuple[str, ...]] = []
        self.inodes: dict[int, Inode] = {}
        self.capacity = capacity
        self.fuse: int | None = None
        self.operations = 0
        self.broken = False
        self.locked = False
        #: What operations of a kind fail with: `{"write": errno.EIO}`.
        self.suffering: dict[str, int] = {}

    # -------------------------------------------------------------- power and room

    def step(self) -> bool:
        """Count an operation; True when the power fails in it."""
        self.operations += 1
        if self.fuse is None:
            return False
        self.fuse -= 1
        return self.fuse < 0

    def suffer(self, operation: str) -> None:
        if operation in self.suffering:
            number = self.suffering[operation]
            raise OSError(number, os.strerror(number))

    def operate(self) -> None:
        if self.step():
            raise PowerCut

    def room(self) -> int:
        if self.capacity is None:
            return 1 << 60
        return max(0, self.capacity - sum(len(inode.seen) for inode in self.names.values()))

    def killed(self) -> Disk:
        """The disk after kill -9: all that was seen is there, and no safer than it was."""
        disk = type(self)(self.capacity)
        copies: dict[int, Inode] = {}
        for inode in [*self.names.values(), *self.safe_names.values(), *self.inodes.values()]:
            copy = copies.setdefault(id(inode), Inode(inode.safe))
            copy.seen[:] = inode.seen
            copy.longest = inode.longest
        disk.names = {name: copies[id(inode)] for name, inode in self.names.items()}
        disk.safe_names = {name: copies[id(inode)] for name, inode in self.safe_names.items()}
        disk.inodes = {number: copies[id(inode)] for number, inode in self.inodes.items()}
        disk.folders, disk.safe_folders = set(self.folders), set(self.safe_folders)
        disk.pending = list(self.pending)
        return disk

    def failed(self, chance: random.Random | None) -> Disk:
        """The disk after a loss of power; without chance nothing unsynced is left."""
        names = dict(self.safe_names)
        folders = set(self.safe_folders)
        for operation, *rest in self.pending:
            if chance is None or chance.random() < 0.5:
                continue
            if operation == "make":
                folders.add(rest[0])
            elif operation == "remove":
                names.pop(rest[0], None)
            elif operation == "create":
                names[rest[0]] = self.inodes[int(rest[1])]
            else:
                names.pop(rest[0], None)
                names[rest[1]] = self.inodes[int(rest[2])]
        left = {
            name: inode.survive(chance)
            for name, inode in names.items()
            if name.rpartition("/")[0] in folders
        }
        disk = type(self)(self.capacity)
        disk.folders, disk.safe_folders = set(folders), set(folders)
        disk.names = {name: Inode(data) for name, data in left.items()}
        disk.safe_names = dict(disk.names)
        return disk

    # -------------------------------------------------------------- what a journal asks for

    def read(self, path: str) -> bytes:
        if path not in self.names:
            raise FileNotFoundError(path)
        return bytes(self.names[path].seen)

    def open(self, path: str) -> pa.NativeFile:
        return pa.BufferReader(self.read(path))

    def mark(self, path: str) -> object:
        return None

    def list(self, path: str) -> list[str]:
        prefix = path + "/" if path else ""
        found = {
            name[len(prefix) :].partition("/")[0]
            for name in [*self.names, *self.folders]
            if name.startswith(prefix) and len(name) > len(prefix)
        }
        return sorted(found)

    def lock(self) -> Disk:
        if self.locked:
            raise JournalLocked("the disk is being written")
        self.locked = True
        return self

    def release(self) -> None:
        self.locked = False

    def make(self, path: str) -> None:
        if path not in self.folders:
            self.operate()
            self.folders.add(path)
            self.pending.append(("make", path))

    def create(self, path: str) -> File:
        self.suffer("create")
        self.operate()
        assert path.rpartition("/")[0] in self.folders, "no such folder"
        if self.room() == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        inode = Inode()
        self.names[path] = inode
        self.pending.append(("create", path, self._number(inode)))
        return self.opened(inode)

    def extend(self, path: str) -> File:
        return self.opened(self.names[path])

    def opened(self, inode: Inode) -> File:
        return DiskFile(self, inode)

    def rename(self, old: str, new: str) -> None:
        self.operate()
        inode = self.names.pop(old)
        self.names[new] = inode
        self.pending.append(("rename", old, new, self._number(inode)))

    def remove(self, path: str) -> None:
        self.operate()
        del self.names[path]
        self.pending.append(("remove", path))

    def sync(self, path: str) -> None:
        self.suffer("sync")
        self.operate()
        kept = []
        for operation in self.pending:
            # The folder that a name is in; a folder's own name is in the one above it.
            if operation[1].rpartition("/")[0] != path:
                kept.append(operation)
                continue
            match operation:
                case ("make", name):
                    self.safe_folders.add(name)
                case ("remove", name):
                    self.safe_names.pop(name, None)
                case ("create", name, number):
                    self.safe_names[name] = self.inodes[int(number)]
                case (_, old, new, number):
                    self.safe_names.pop(old, None)
                    self.safe_names[new] = self.inodes[int(number)]
        self.pending = kept

    def _number(self, inode: Inode) -> str:
        self.inodes[id(inode)] = inode
        return str(id(inode))


class DirectDisk(Disk):
    """The same, and files are written past the memory that the system has for them."""

    def opened(self, inode: Inode) -> File:
        return DirectFile(DiskPages(self, inode))
