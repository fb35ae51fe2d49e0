"""Keys as file names: what was stored is found again, and no key leaves its folder."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenlake.volumes.file_names import is_digest, key_of, path_of


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("robot/7/pose", "robot/7/pose"),
        ("a/.hidden", "a/%2Ehidden"),
        ("a:b/50%", "a%3Ab/50%25"),
        ("a/..", "a/%2E%2E"),
        (".", "%2E"),
        ("end./space ", "end%2E/space%20"),
        ("ä/☃", "ä/☃"),
        ('"<>|\\', "%22%3C%3E%7C%5C"),
        ("a\n\x00\x7f", "a%0A%00%7F"),
        ("@x/%41", "@x/%2541"),
    ],
)
def test_what_a_filesystem_forbids_is_escaped(key: str, path: str) -> None:
    assert path_of(key) == path
    assert key_of(path) == key


def test_a_key_with_others_below_it_has_a_percent_sign_at_its_end() -> None:
    assert key_of("a/b%") == "a/b"


def test_a_chunk_too_long_for_a_name_is_named_by_its_digest() -> None:
    # The first 40 digits of the SHA-256 of 241 times x.
    path = "a/%~7dbf05774ebc8b0213e8f74d789e344714ca95a0/b"
    assert path_of(f"a/{'x' * 241}/b") == path
    assert is_digest(path)
    assert key_of(path) is None
    assert path_of("x" * 240) == "x" * 240


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="/"), min_size=1)))
def test_a_key_comes_back_from_its_path_and_the_path_stays_below_its_folder(
    chunks: list[str],
) -> None:
    key = "/".join(chunks)
    path = path_of(key)
    assert not {".", "..", ""} & set(path.split("/")) or not chunks
    assert is_digest(path) or key_of(path) == key
    assert all(len(name.encode()) <= 240 for name in path.split("/"))
