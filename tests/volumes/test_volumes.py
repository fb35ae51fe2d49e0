"""What every volume promises, tried on each of them beside one oracle."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain
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

from tests.newest.oracle import Said, answers
from tests.volumes.dying import opened_in, plan
from tests.volumes.mortal import MERGING, Mortal
from tests.volumes.opened import KINDS, OPTIONS, opened, options_of
from zenlake.keys import intersects
from zenlake.newest import Batch, Contents, Entry, Value, WideUpdate
from zenlake.volumes import Volume
from zenlake.volumes.memory import Memory

Records = tuple[dict[str, Entry], dict[str, WideUpdate]]

A, B = b"\x01", b"\x02"
KEYS = ["a", "a/b", "a/b/c", "d", "50%/.x", "e:f", "x" * 300, "@v/a", "a/**", "**", "*/b"]
KEYS += ["\\0\0", "\\\\"]
#: How many runs of dying processes; at night more.
SEEDS = int(os.environ.get("ZENLAKE_ROUNDS", "1"))
SELECTORS = ["**", "a", "a/*", "*/b", "a/**", "d", "@v/*"]


#: How many operations a batch takes, about: one more is after its end.
OPERATIONS = {"sqlite": 11, "fs": 41, "rocksdb": 5, "postgres": 6, "redis": 3, "s3": 8}
#: What a clock tells: some of it late, and some at the same time as others.
SAID = st.builds(
    Said,
    st.sampled_from(KEYS),
    st.integers(1 << 62, (1 << 62) + 12),
    st.sampled_from([A, B]),
    st.sampled_from(["v", "w", "", None]),
)


class Stored(RuleBasedStateMachine):
    """A storage's contents in front of a volume: updates, writes, restarts and crashes."""

    kind = ""
    mortal: Mortal

    @initialize()
    def start(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="zenlake-volume-")
        self.volume: Volume = opened(self.kind, Path(self._folder.name))
        self.contents = Contents(keeps=True)
        self.said: list[Said] = []

    @rule(one=SAID)
    def update(self, one: Said) -> None:
        if any((other.time, other.id) == (one.time, one.id) for other in self.said):
            return  # no clock tells a time twice
        self.said.append(one)
        self._tell(one)

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

    @rule(
        said=st.lists(SAID, min_size=1, max_size=4),
        at=st.integers(0, 50),
        seed=st.integers(0, 3),
    )
    def die(self, said: list[Said], at: int, seed: int) -> None:
        """Write and be killed, or lose the power, between two operations on the disk."""
        for one in said:
            self.update(one)
        batch = self.contents.take()
        before = self._records()
        self.volume.close()
        folder = Path(self._folder.name)
        options = options_of(self.kind, folder)
        if "fsync" in options:
            options["fsync"] = True
        step = 1 + at % OPERATIONS[self.kind]
        sure = self.mortal.write(self.kind, options, batch, step, seed)
        self.volume = opened(self.kind, folder)
        after = self._records()
        if sure or after != before:
            assert after == after_batch(before, batch), "all of a batch or nothing"
        assert list(self.volume.check()) == []
        self.crash()

    def _records(self) -> Records:
        """All that the volume has."""
        entries = {entry.key: entry for entry in self.volume.entries()}
        for key, entry in zip(entries, self.volume.read(list(entries)), strict=True):
            assert entry is not None
            entries[key] = entry
        return entries, {update.expr: update for update in self.volume.wide()}

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


def after_batch(records: Records, batch: Batch) -> Records:
    """What a volume has after a batch, as its contract says."""
    entries, wide = dict(records[0]), dict(records[1])
    for entry in batch.entries:
        value = entry.value
        if value is not None and value.payload is None:  # only its times have changed
            old = entries[entry.key].value
            assert old is not None
            value = Value(old.payload, value.encoding_id, value.schema, value.attachment)
        entries[entry.key] = entry._replace(value=value)
    for key in batch.removed:
        entries.pop(key, None)
    wide.update((update.expr, update) for update in batch.wide)
    for expr in batch.forgotten:
        wide.pop(expr, None)
    return entries, wide


@pytest.fixture(scope="module")
def mortal(dying_disk: Path) -> Iterator[Mortal]:
    writes = Mortal(dying_disk)
    yield writes
    writes.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_volume_gives_back_what_the_rule_says(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mortal: Mortal
) -> None:
    OPTIONS[kind](tmp_path)  # its server runs, or the test ends here
    machine = type(f"Stored_{kind}", (Stored,), {"kind": kind, "mortal": mortal})
    if kind == "s3":  # so that objects are merged and written anew all the time
        from zenlake.volumes import s3

        for name, number in MERGING.items():
            monkeypatch.setattr(s3, name, number)
    examples, steps = {"sqlite": (15, 25), "fs": (15, 25), "s3": (4, 15)}.get(kind, (8, 25))
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
    assert [s.time for s in volume.history(["a"], None, None, 2)] == [1, 2]
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
def test_a_batch_is_whole_or_not_there_and_stays_once_it_is_written(
    kind: str, tmp_path: Path, dying_disk: Path
) -> None:
    """Whenever a process is killed, or the power fails and what was not synced is forgotten.

    Between any two operations on the disk that it makes, down to those of the libraries.
    """
    for seed in range(1, 1 + SEEDS):
        folder = tmp_path / str(seed)
        done = subprocess.run(
            [sys.executable, "-m", "tests.volumes.dying", kind, folder, dying_disk, str(seed)],
            check=True,
            timeout=60 * SEEDS,
            stdout=subprocess.PIPE,
            env={**os.environ, "LD_PRELOAD": str(dying_disk)},
        )
        batches = plan(seed)
        states = [answers([*chain(*batches[:n])]) for n in range(len(batches) + 1)]
        surely = json.loads(done.stdout)
        assert {1, len(batches)} <= set(surely), "some died before the end, and some after it"
        for step, sure in enumerate(surely):
            found = _found(kind, folder / str(step))
            assert found in states[sure : sure + 2], (step, sure)


def _found(kind: str, folder: Path) -> dict[str, tuple[int, bytes, str]]:
    """What a volume has after all, by the rule."""
    volume = opened_in(kind, folder, fsync=False)
    contents = Contents(keeps=True)
    contents.load(volume.entries(), volume.wide())
    keys = contents.keys("**")
    found = {}
    for entry in volume.read(keys):
        assert entry is not None
        assert entry.value is not None
        assert entry.value.payload is not None
        found[entry.key] = (entry.time, entry.id, entry.value.payload.decode())
    assert list(volume.check()) == []
    volume.close()
    return found
