from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from zenlake.clock.zid import id_text
from zenlake.errors import LocalError
from zenlake.lake.table.location import LakeLocation
from zenlake.recorded.columns import id_bytes


def test_a_place_is_a_folder_or_an_address(tmp_path: Path) -> None:
    place = LakeLocation(tmp_path)
    assert LakeLocation(f"file://{tmp_path}").root == place.root == str(tmp_path)
    assert pickle.loads(pickle.dumps(place)).uri == place.uri
    assert (place / "a").address("b") == f"file://{tmp_path}/a/b"
    assert place.path("") == str(tmp_path)


@pytest.mark.parametrize(
    ("uri", "root"),
    [
        ("gs://bucket/lake", "bucket/lake"),
        ("abfss://container@account.dfs.core.windows.net/lake", "container/lake"),
    ],
)
def test_clouds_are_addressed_as_they_name_themselves(uri: str, root: str) -> None:
    place = LakeLocation(uri)
    assert (place.root, (place / "samples").uri) == (root, f"{uri}/samples")


@pytest.mark.parametrize(
    "uri", ["s3://KEY:hush@bucket/lake", "s3://KEY@bucket/lake", "abfss://c:hush@account/lake"]
)
def test_an_address_with_a_key_in_it_is_refused_without_repeating_it(uri: str) -> None:
    with pytest.raises(LocalError, match="has a key in it") as refused:
        LakeLocation(uri)
    assert "hush" not in str(refused.value)
    assert "KEY" not in str(refused.value).partition(";")[0]


def test_files_and_folders_come_and_go(tmp_path: Path) -> None:
    place = LakeLocation(tmp_path / "lake")
    assert not place.exists()
    assert (place.folders(), list(place.files())) == ([], [])
    place.make("a/b")
    (tmp_path / "lake" / "a" / "f").write_bytes(b"123")
    ((name, size, age),) = place.files()
    assert (name, size, place.folders()) == ("a/f", 3, ["a"])
    assert age < 60
    for _ in range(2):
        place.remove("a/f")
        place.remove_folder("a")
    assert place.folders() == []


def test_nobody_else_may_look_into_a_lake(tmp_path: Path) -> None:
    LakeLocation(tmp_path / "new" / "lake").make("samples")
    for folder in ("new", "new/lake", "new/lake/samples"):
        assert (tmp_path / folder).stat().st_mode & 0o077 == 0


def test_ids_are_read_by_people_and_ordered_by_their_bytes() -> None:
    assert id_text(b"\xb3\xa2\x01") == "1a2b3"
    assert id_bytes("1a2b3") == b"\xb3\xa2\x01"
    assert id_bytes(None) == b""
    assert id_text(b"") == ""
