"""Files that only grow, whichever way they are written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zenlake.journal.disk.files import File, LocalFiles

PAGE = 4096
SIZES = st.sampled_from([0, 1, 7, 100, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE, (1 << 20) + 3])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.lists(SIZES, min_size=1, max_size=3)),
        st.tuples(st.just("truncate"), st.floats(0, 1)),
        st.tuples(st.sampled_from(["fsync", "reopen"]), st.none()),
    ),
    max_size=8,
)


@given(steps=STEPS)
@settings(max_examples=40, deadline=None)
def test_what_was_written_is_there_at_once_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, object]]
) -> None:
    folder = tmp_path_factory.mktemp("files")
    check(LocalFiles(folder), folder, steps)


@pytest.mark.parametrize("direct", [True, False])
def test_the_same_holds_for_ordinary_files(tmp_path: Path, direct: bool) -> None:
    sizes = [[1], [PAGE, 5], [3], [(1 << 20) + 1]]
    steps: list[tuple[str, object]] = [("write", size) for size in sizes]
    check(
        LocalFiles(tmp_path, direct=direct),
        tmp_path,
        [*steps, ("truncate", 0.5), ("reopen", None), *steps],
    )


def check(shelf: LocalFiles, folder: Path, steps: list[tuple[str, object]]) -> None:
    """Do it, and look at the file after every step."""
    file: File = shelf.create("f")
    wanted = b""
    for number, (step, value) in enumerate(steps):
        if step == "write":
            assert isinstance(value, list)
            parts = [bytes([number + 1]) * size for size in value]
            file.write(parts)
            wanted += b"".join(parts)
        elif step == "truncate":
            assert isinstance(value, float)
            wanted = wanted[: int(len(wanted) * value)]
            file.truncate(len(wanted))
        elif step == "fsync":
            file.fsync()
        else:
            file.close()
            file = shelf.extend("f")
        assert (folder / "f").read_bytes() == wanted
    file.close()
    assert (folder / "f").read_bytes() == wanted


def test_a_process_can_keep_its_memory() -> None:
    # In a process of its own: it cannot be undone.
    script = (
        "import pyarrow as pa; from zenlake.journal.disk.memory import keep_memory\n"
        "kept = keep_memory()\n"
        "assert kept == (pa.default_memory_pool().backend_name == 'system'), kept\n"
        "assert len(pa.array(range(100000))) == 100000"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=50)
