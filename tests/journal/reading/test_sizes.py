"""How large rows are is told without reading them, sealed or not."""

from __future__ import annotations

import itertools

from tests.journal.forgetful_disk import Disk
from tests.journal.rows import rows
from zenlake.journal import Journal
from zenlake.journal.writing.log import Log


def test_blocks_tell_their_sizes_sealed_and_in_the_write_ahead_file() -> None:
    log = Log(disk := Disk())
    journal = Journal(disk, "disk")
    assert journal.sizes(0, 0, 10) == []
    for n in range(3):
        log.write(0, rows(["a", "b"], start=2 * n, values=[bytes(100_000 * (n + 1))] * 2))
        log.commit()
    growing = journal.sizes(0, 0, 6)
    assert [(one.first, one.end) for one in growing] == [(0, 2), (2, 4), (4, 6)]
    assert all(a.bytes + 150_000 < b.bytes for a, b in itertools.pairwise(growing))
    assert journal.sizes(0, 3, 4) == growing[1:2]
    log.partitions[0].seal(0.0)
    assert journal.sizes(0, 0, 6) == growing
    log.write(0, rows(["a"], start=6))
    log.commit()
    assert [one.first for one in journal.sizes(0, 4, 100)] == [4, 6]
    # What cannot be opened counts as its segment says, and who reads it will hear why.
    del disk.names["p0000/00000000000000000000.arrow"].seen[1000:]
    assert [(one.first, one.end) for one in journal.sizes(0, 0, 6)] == [(0, 6)]
