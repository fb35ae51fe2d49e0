"""A writer that is killed: what its watermark said before is there after."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from tests.journal.rows import told
from tests.waiting import SECONDS
from zenlake.journal import Journal, JournalWriter

WRITER = textwrap.dedent(
    """
    import sys
    from tests.journal.rows import rows
    from zenlake.journal import JournalWriter

    home, start = sys.argv[1], int(sys.argv[2])
    writer = JournalWriter.open(
        home, partitions=2, fsync="3ms", segment_bytes=60_000, queue_bytes=200_000
    )
    counts = list(writer.watermark.offsets)
    print("ready", flush=True)
    while True:
        for partition in (0, 1):
            writer.append(partition, rows([f"k/{partition}"] * 7, start=counts[partition]))
            counts[partition] += 7
    """
)


@pytest.mark.slow
def test_what_was_acknowledged_before_a_kill_is_there_after(tmp_path: pathlib.Path) -> None:
    home = str(tmp_path / "journal")
    promised: tuple[int, ...] = (0, 0)
    for round_ in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, home, str(round_)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        journal = Journal.open(home)
        deadline = time.monotonic() + SECONDS
        # Another moment each time, and always one in the middle of something.
        while sum(journal.watermark().offsets) < sum(promised) + 300 + 450 * round_:
            assert time.monotonic() < deadline, "the writer writes nothing"
        promised = journal.watermark().offsets
        process.send_signal(signal.SIGKILL)
        process.wait(SECONDS)
        process.stdout.close()
        with JournalWriter.open(home, segment_bytes=60_000) as writer:
            found = writer.watermark.offsets
        assert all(now >= before for now, before in zip(found, promised, strict=True))
        for partition in (0, 1):
            assert told(journal.scan(partition=partition)) == [
                (offset, f"k/{partition}", str(offset).encode())
                for offset in range(found[partition])
            ]
    assert len(journal.segments(0)) > 2
