"""What every volume promises, tried on each of them beside one oracle."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.storage.oracle import Said, answers
from tests.volumes.opened import KINDS, OPTIONS, opened
from zenlake.keys import intersects
from zenlake.storage import Batch, Contents, Entry, Value, WideUpdate
from zenlake.storages.service import checked_options
from zenlake.volumes import Volume, volume_class
from zenlake.volumes.memory import Memory

A, B = b"\x01", b"\x02"
KEYS = ["a", "a/b", "a/b/c", "d", "50%/.x", "e:f", "x" * 300, "@v/a", "a/**", "**", "*/b"]
KEYS += ["\\0\0", "\\\\"]
SELECTORS = ["**", "a", "a/*", "*/b", "a/**", "d", "@v/*"]


class Stored(RuleBasedStateMachine):
    """A storage's contents in front of a volume: updates, writes, restarts and crashes."""

    kind = ""

    @initialize()
    def start(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="zenlake-volume-")
        self.volume: Volume = opened(self.kind, Path(self._folder.name))
        self.contents = Contents(keeps=True)
        self.said: list[Said] = []

    @rule(
        key=st.sampled_from(KEYS),
        time=st.integers(1 << 62, (1 << 62) + 12),
        id=st.sampled_from([A, B]),
        value=st.sampled_from(["v", "w", "", None]),
    )
    def update(self, key: str, time: int, id: bytes, value: str | None) -> None:
        if any((one.time, one.id) == (time, id) for one in self.said):
            return  # no clock tells a time twice
        self.said.append(Said(key, time, id, value))
        self._tell(self.said[-1])

    def _tell(self, one: Said) -> None:
        if one.value is None:
            self.contents.delete(one.key, one.time, one.id)
        else:
            self.contents.put(one.key, one.time, one.id, Value(one.value.encode(), 3, b"s"))

    @rule(most=st.sampled_from([1, 2, 1000]))
    def write(self, most: int) -> None:
        batch = self.contents.take(most)
        self.volume.write(batch)
        self.contents.written(batch)

    @rule(before=st.integers(0, 12))
    def collect(self, before: int) -> None:
        """Forget deletions that nothing older can come after any more."""
        self.volume.tidy()
        oldest = min([one.time for one in self.said], default=1 << 62)
        self.contents.collect(min(oldest, (1 << 62) + before))

    @precondition(lambda self: not self.contents.dirty)
    @rule()
    def restart(self) -> None:
        self.volume.close()
        self.volume = opened(self.kind, Path(self._folder.name))
        self.contents = Contents(keeps=True)
        self.contents.load(self.volume.entries(), self.volume.wide())

    @rule()
    def crash(self) -> None:
        """Lose all that was not written; everything is heard again, as from a replica."""
        self.restart()
        for one in self.said:
            self._tell(one)

    @invariant()
    def answers_are_those_of_the_oracle(self) -> None:
        if not hasattr(self, "contents"):
            return
        truth = answers(self.said)
        everything = {}
        for selector in SELECTORS:
            found = {entry.key: entry for entry in self.contents.matching(selector)}
            assert found.keys() == {key for key in truth if intersects(selector, key)}, selector
            everything.update(found)
        away = [k for k, e in everything.items() if e.value and e.value.payload is None]
        for key, entry in zip(away, self.volume.read(away), strict=True):
            assert entry is not None
            everything[key] = entry
        for key, (time, id, value) in truth.items():
            assert everything[key][1:3] == (time, id)
            assert everything[key].value == Value(value.encode(), 3, b"s")

    def teardown(self) -> None:
        if hasattr(self, "volume"):
            self.volume.close()
            self._folder.cleanup()


@pytest.mark.parametrize("kind", KINDS)
def test_a_volume_gives_back_what_the_rule_says(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    OPTIONS[kind](tmp_path)  # its server runs, or the test ends here
    machine = type(f"Stored_{kind}", (Stored,), {"kind": kind})
    if kind == "s3":  # so that objects are merged and written anew all the time
        from zenlake.volumes import s3

        monkeypatch.setattr(s3, "_MERGE", 2)
        monkeypatch.setattr(s3, "_WORTH", 0)
    examples, steps = {"sqlite": (25, 25), "fs": (25, 25), "s3": (4, 15)}.get(kind, (8, 25))
    if settings.default is not None and settings.default.max_examples > 1000:  # at night
        examples *= 40
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_all_parts_of_a_value_survive(kind: str, tmp_path: Path) -> None:
    value = Value(bytes(range(256)), 52, b"utf-8;x", b"attached")
    wide = WideUpdate("a/**", (1 << 64) - 1, A, value, 7, B)
    entry = Entry("a/b", (1 << 64) - 1, bytes(16), 1, A, value)
    volume = opened(kind, tmp_path)
    volume.write(Batch([entry, Entry("gone", 3, A, 3, A, None)], [], [wide], [], []))
    volume.close()
    volume = opened(kind, tmp_path)
    assert volume.read(["a/b", "other"]) == [entry, None]
    assert list(volume.wide()) == [wide]
    assert {e.key: e.value is None for e in volume.entries()} == {"a/b": False, "gone": True}
    assert volume.count() == 1
    assert volume.list("a/*") == ["a/b"]
    assert list(volume.check()) == []
    volume.write(Batch([], ["a/b", "gone"], [], ["a/**"], []))
    assert (list(volume.entries()), list(volume.wide())) == ([], [])
    volume.close()


@pytest.mark.parametrize("kind", ["memory", *KINDS])
def test_history_is_given_by_key_and_time_and_trimmed(kind: str, tmp_path: Path) -> None:
    volume = Memory("s", {}) if kind == "memory" else opened(kind, tmp_path)
    samples = [
        Entry(key, time, A, time, A, None if time == 5 else Value(b"%d" % time))
        for time in range(1, 10)
        for key in ("a", "b")
    ]
    volume.write(Batch([], [], [], [], samples[9:]))
    volume.write(Batch([], [], [], [], samples[:10]))
    if kind != "memory":
        volume.close()
        volume = opened(kind, tmp_path)
    assert sorted(volume.history_keys()) == ["a", "b"]
    (deleted,) = volume.history(["b"], 5, 5, None)
    assert deleted == samples[9]
    assert [s.time for s in volume.history(["a"], 3, 6, None)] == [3, 4, 5, 6]
    assert [s.time for s in volume.history(["a"], None, None, 2)] == [8, 9]
    assert volume.trim(3, None, None) == 4
    assert volume.trim(None, 2, None) == 10
    left = [(s.key, s.time) for s in volume.history(["a", "b"], None, None, None)]
    assert left == [("a", 8), ("a", 9), ("b", 8), ("b", 9)]
    assert volume.trim(100, None, None) == 2, "the newest sample of a key stays"
    again = [Entry("a", time, A, time, A, Value(bytes(1000))) for time in range(10, 20)]
    volume.write(Batch([], [], [], [], [*again, Entry("a", 2, A, 2, A, Value(b"late"))]))
    assert volume.trim(9, None, None) == 1, "one that came late"
    assert volume.trim(None, None, 5000) == 7, "the oldest of all keys, but the newest of b"
    left = [(s.key, s.time) for s in volume.history(["a", "b"], None, None, None)]
    assert left == [*(("a", time) for time in (16, 17, 18, 19)), ("b", 9)]
    volume.close()


def test_files_are_readable_by_name_and_files_of_others_are_found(tmp_path: Path) -> None:
    volume = opened("fs", tmp_path)
    entry = Entry("robot/7/pose", 5, A, 5, A, Value(b"3.5 1.2", 1))
    volume.write(Batch([entry], [], [], [], []))
    file = tmp_path / "fs/robot/7/pose"
    assert file.read_bytes() == b"3.5 1.2"
    volume.close()
    (tmp_path / "fs/robot/7/name").write_text("Ada")
    (tmp_path / "fs/no#key").write_text("skipped")
    file.unlink()
    volume = opened("fs", tmp_path)
    assert [entry.key for entry in volume.entries()] == ["robot/7/name"]
    (found,) = volume.read(["robot/7/name"])
    assert found is not None
    assert found.value == Value(b"Ada")
    volume.close()


#: Writes a batch in processes that die at the n-th operation on a disk, for every n; some more of
#: them run until they close the volume.
DYING = """
import ctypes, os, shutil, sys
from pathlib import Path
from zenlake.storage import Batch, Entry, Value
from zenlake.storages.service import checked_options
from zenlake.volumes import volume_class

kind, folder, armed = sys.argv[1], Path(sys.argv[2]), ctypes.CDLL(sys.argv[3])
made = volume_class(kind)
values = {"a": Value(b"new"), "a/below": Value(b"new"), "b": None, "c": Value(b"new")}
batch = Batch([Entry(k, 2, b"1", 2, b"1", v) for k, v in values.items()], [], [], [], [])
old = Batch([Entry(k, 1, b"1", 1, b"1", Value(b"old")) for k in "abc"], [], [], [], [])

def run(place, batch, step):
    # A volume never sees a fork: it is opened and ends in one process.
    child = os.fork()
    if not child:
        volume = made("s", checked_options(kind, made, {"dir": str(place), "fsync": True}))
        if step:
            armed.arm(ctypes.c_long(step))
        volume.write(batch)
        volume.close()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

assert run(folder / "old", old, 0) == 0
for step in range(1, 500):
    place = folder / str(step)
    shutil.copytree(folder / "old", place)
    code = run(place, batch, step)
    assert code in (0, 9), code
    if code == 0:
        sys.exit(0)
sys.exit("it never came to its end")
"""


@pytest.fixture(scope="module")
def dying_disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that ends the process that it is loaded into at an operation on a disk."""
    built = tmp_path_factory.mktemp("dying") / "dying_disk.so"
    source = Path(__file__).with_name("dying_disk.c")
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-o", built, source, "-ldl"], check=True, timeout=60
    )
    return built


@pytest.mark.parametrize("kind", ["sqlite", "fs", "rocksdb"])
def test_a_batch_is_whole_or_not_there_whenever_a_process_is_killed(
    kind: str, tmp_path: Path, dying_disk: Path
) -> None:
    """Between any two operations on the disk that it makes, down to those of the libraries."""
    subprocess.run(
        [sys.executable, "-c", DYING, kind, tmp_path, dying_disk],
        check=True,
        timeout=60,
        env={**os.environ, "LD_PRELOAD": str(dying_disk)},
    )
    outcomes = []
    made = volume_class(kind)
    for folder in sorted(tmp_path.iterdir()):
        volume = made("s", checked_options(kind, made, {"dir": str(folder), "fsync": True}))
        outcomes.append(
            {
                entry.key: entry.value.payload
                for entry in volume.read(["a", "a/below", "b", "c"])
                if entry is not None and entry.value is not None
            }
        )
        assert list(volume.check()) == []
        volume.close()
    before: dict[str, bytes | None] = {"a": b"old", "b": b"old", "c": b"old"}
    after: dict[str, bytes | None] = {"a": b"new", "a/below": b"new", "c": b"new"}
    assert len(outcomes) == outcomes.count(before) + outcomes.count(after)
    assert outcomes.count(before) > 1, "one of them was never written to"
    assert outcomes.count(after) > 1, "one of them came to its end"
