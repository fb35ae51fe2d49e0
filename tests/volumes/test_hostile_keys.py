"""Keys that no file, index or object is glad of: kept exactly, or refused alone and by name."""

from __future__ import annotations

import sqlite3
import tempfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.volumes.opened import KINDS, opened
from zenlake.newest import Batch, Contents, Entry, Value
from zenlake.volumes import RecordsRefused, Volume
from zenlake.volumes.memory import Memory
from zenlake.volumes.refusals import write_without_refused
from zenlake.volumes.stripped import NONE_KEY, Stripped

ID = b"\x01"
ORDINARY = [f"robot/{n}/pose" for n in range(5)]
#: Random, so that no server compresses it.
NOISE = "".join(chr(0x4E00 + (n * 7919) % 20_000) for n in range(1400))
CHUNKS = [
    ".", "..", "...", " ", "a ", "a.", ".a", "~", "%", "%2E", "%~0", "a%", "%41", "\\0", "a\0b",
    "A", "a", "CON", "nul.txt", "COM1", "-rf", "'; DROP TABLE entries", "\x7f", "\U0001f916",
    ".zenlake.sqlite", ".zenlake.new", unicodedata.normalize("NFC", "é"),
    unicodedata.normalize("NFD", "é"), "b" * 255, "c" * 256, "d" * 4096, "é" * 127, "@x",
]  # fmt: skip
HOSTILE = [
    *CHUNKS, "a/b", "a/b/c", "a%/b", "../../etc/passwd", "/".join(["deep"] * 600),
    "/".join(["0123456789"] * 600), "/".join("x" * 1000), NOISE, f"{NOISE}/{NOISE}", "e" * 60_000,
    "/".join(["q" * 230] * 20),
]  # fmt: skip


def put(key: str, time: int = 5) -> Entry:
    return Entry(key, time, ID, time, ID, Value(f"value of {key}".encode()))


def started(kind: str, folder: Path) -> Volume:
    return Memory("s", {}) if kind == "memory" else opened(kind, folder)


def kept(volume: Volume, refused: set[str], keys: list[str]) -> None:
    """What a volume must have of some keys, and of nothing else."""
    wanted = [key for key in dict.fromkeys(keys) if key not in refused]
    assert volume.read(wanted) == [put(key) for key in wanted]
    assert {entry.key for entry in volume.entries()} == set(wanted)
    assert list(volume.check()) == []


@pytest.mark.parametrize("kind", ["memory", *KINDS])
def test_each_hostile_key_is_kept_or_refused_by_name_and_all_others_are_kept(
    kind: str, tmp_path: Path
) -> None:
    keys = [key for pair in zip(HOSTILE, ORDINARY * 20, strict=False) for key in pair]
    entries = [put(key) for key in dict.fromkeys(keys)]
    volume = started(kind, tmp_path)
    refusals = write_without_refused(volume, Batch(entries, [], [], [], entries))
    refused = {refusal.key for refusal in refusals}
    assert refused <= set(HOSTILE)
    assert refused if kind == "postgres" else not refused
    kept(volume, refused, keys)
    assert set(volume.history_keys()) == set(keys) - refused
    if kind != "memory":
        volume.close()
        volume = opened(kind, tmp_path)
        kept(volume, refused, keys)
    gone = Batch([], [entry.key for entry in entries], [], [], [])
    assert write_without_refused(volume, gone) == []
    assert list(volume.entries()) == []
    volume.close()


@settings(max_examples=25, deadline=None)
@given(
    kind=st.sampled_from(["sqlite", "fs", "rocksdb"]),
    batches=st.lists(
        st.lists(
            st.one_of(
                st.sampled_from(HOSTILE),
                st.lists(st.sampled_from(CHUNKS), min_size=1, max_size=4).map("/".join),
            ),
            min_size=1,
            max_size=8,
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_hostile_keys_do_not_meet_each_other(kind: str, batches: list[list[str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        volume = opened(kind, Path(folder))
        for keys in batches:
            batch = [put(key) for key in dict.fromkeys([*keys, *ORDINARY])]
            assert write_without_refused(volume, Batch(batch, [], [], [], [])) == []
        everything = [key for keys in batches for key in keys] + ORDINARY
        kept(volume, set(), everything)
        volume.close()
        volume = opened(kind, Path(folder))
        kept(volume, set(), everything)
        volume.close()


def test_a_file_that_an_older_version_could_not_name_stops_no_start(tmp_path: Path) -> None:
    """Its records said that the file was to be moved, and every start failed to."""
    volume = opened("fs", tmp_path)
    volume.close()
    key = "/".join(["0123456789"] * 600)
    folder = tmp_path / "fs"
    (folder / ".zenlake.new/1-1").write_bytes(put(key).value.payload or b"")  # type: ignore[union-attr]
    with sqlite3.connect(folder / ".zenlake.sqlite") as records:
        records.execute("INSERT INTO moves VALUES (?, '1-1')", (key,))
        row = (key, 5 - (1 << 63), ID, 5 - (1 << 63), ID, 0, 0, None, None, None)
        records.execute(f"INSERT INTO entries VALUES ({', '.join('?' * 10)})", row)
    records.close()
    volume = opened("fs", tmp_path)
    assert volume.read([key]) == [put(key)]
    volume.close()


KNOWN = Batch([put("known", 0)], [], [], [], [])


class Picky(Memory):
    """A volume that cannot keep some values, and names them, or says so, or has a defect."""

    def __init__(self, bad: set[str], how: str) -> None:
        super().__init__("picky", {})
        self.bad, self.how, self.writes = bad, how, 0

    def write(self, batch: Batch) -> None:
        self.writes += 1
        records = [*batch.entries, *batch.samples]
        bad = [one for one in records if one.key in self.bad and one.value is not None]
        if bad and self.how == "defect":
            raise AttributeError("too hot")
        if bad:
            raise RecordsRefused("too hot", bad if self.how == "names" else ())
        super().write(batch)


@pytest.mark.parametrize("how", ["names", "says", "defect"])
@settings(max_examples=30, deadline=None)
@given(
    keys=st.lists(st.integers(0, 40).map(str), min_size=1, max_size=40, unique=True),
    bad=st.sets(st.integers(0, 40).map(str), max_size=10),
    most=st.integers(1, 50),
)
def test_a_batch_is_written_without_what_is_refused(
    how: str, keys: list[str], bad: set[str], most: int
) -> None:
    volume = Picky(bad, how)
    contents = Contents(keeps=True, history=True)
    for time, key in enumerate(keys, start=1):
        contents.put(key, time, ID, Value(key.encode()))
    # A value of before that the volume could keep is not shown instead.
    for key in keys:
        Memory.write(volume, Batch([put(key, 0)], [], [], [], []))
    while contents.dirty:
        batch = contents.take(most)
        for refusal in write_without_refused(volume, batch, lambda: KNOWN):
            assert refusal.why.endswith("too hot")
            contents.refuse(*refusal[:4])
        contents.written(batch)
    good = set(keys) - bad
    kept = {entry.key for entry in volume.entries()} - {"known"}
    assert kept == good == set(contents.keys("**"))
    assert set(volume.history_keys()) == good
    assert contents.waiting == 0
    assert contents.durable == contents.number
    for time, key in enumerate(keys, start=1):
        assert (contents.refusal(key, time, ID) is None) == (key in good)
        if key in bad:
            assert contents.put(key, time, ID, Value(b"again")) == 0, "it is not tried again"
            assert contents.put(key, time + 100, ID, Value(b"newer")) > 0
    if how == "names":
        assert volume.writes <= 2 * (len(keys) // most + 1) + 2 * len(keys)


def test_a_refused_value_of_many_keys_is_forgotten_with_its_expression() -> None:
    volume = Picky({"a", "b"}, "says")
    contents = Contents(keeps=True)
    contents.put("a", 1, ID, Value(b"1"))
    contents.delete("**", 2, ID)
    contents.put("c", 3, ID, Value(b"3"))
    contents.put("**", 4, ID, Value(b"of many"))
    update = contents.update_of_many("**")
    assert update is not None
    contents.refuse("**", update.put_time, update.put_id, "too hot")
    batch = contents.take()
    assert write_without_refused(volume, batch) == []
    contents.written(batch)
    contents.put("d", 1, ID, Value(b"late"))
    assert contents.get("d") is None, "the deletion is remembered"
    assert contents.dirty == 0


def test_the_key_that_stands_for_the_prefix_inside_of_a_volume_is_refused() -> None:
    volume = Stripped(Memory("s", {}), "p")
    entries = [put("p"), put(f"p/{NONE_KEY}"), put("p/a")]
    refusals = write_without_refused(volume, Batch(entries, [], [], [], []))
    assert [refusal.key for refusal in refusals] == [f"p/{NONE_KEY}"]
    assert volume.read(["p", "p/a"]) == [put("p"), put("p/a")]


def test_a_refusal_behind_a_prefix_names_the_whole_key() -> None:
    volume = Stripped(Picky({"b"}, "names"), "p")
    batch = Batch([put("p/a"), put("p/b")], [], [], [], [])
    assert [one.key for one in write_without_refused(volume, batch)] == ["p/b"]
