"""Another program that merges, sorts, changes and deletes rows of tables with delta-rs.

    python -m tests.lake.other_writer LAKE SECONDS SEED optimize|change

Either it puts files in the place of others, as OPTIMIZE does, or it changes rows. It writes a line
of JSON for each commit: the table, what was done, and the offsets that it deleted. A commit that
lost a race is tried no more.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

TABLES = ("samples", "pose", "pose", "latest")
FEW = 5


def _compact(table: DeltaTable, _: random.Random) -> list[int]:
    table.optimize.compact()
    return []


def _sort(table: DeltaTable, _: random.Random) -> list[int]:
    table.optimize.z_order(["key"])
    return []


def _update(table: DeltaTable, chance: random.Random) -> list[int]:
    table.update({"key": "key"}, predicate=f"offset % 3 = {chance.randrange(3)}")
    return []


def _merge(table: DeltaTable, chance: random.Random) -> list[int]:
    """Put some rows in the place of themselves."""
    rows = table.to_pyarrow_table()
    some = rows.slice(chance.randrange(max(1, rows.num_rows)), FEW)
    same = "t.journal = s.journal AND t.partition = s.partition AND t.offset = s.offset"
    table.merge(some, same, "s", "t").when_matched_update_all().execute()
    return []


def _delete(table: DeltaTable, chance: random.Random) -> list[int]:
    offsets = table.to_pyarrow_table(columns=["offset"])["offset"].to_pylist()
    chosen = chance.sample(offsets, min(FEW, len(offsets)))
    if chosen:
        table.delete(f"offset IN ({', '.join(map(str, chosen))})")
    return chosen


ACTS: dict[str, tuple[Callable[[DeltaTable, random.Random], list[int]], ...]] = {
    "optimize": (_compact, _sort),
    "change": (_update, _merge, _delete),
}


def main() -> None:
    lake, seconds, chance = Path(sys.argv[1]), float(sys.argv[2]), random.Random(int(sys.argv[3]))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        name, act = chance.choice(TABLES), chance.choice(ACTS[sys.argv[4]])
        if name != "pose" and act is _delete:
            continue
        try:
            gone = act(DeltaTable(str(lake / name)), chance)
        except CommitFailedError:
            print(json.dumps({"table": name, "act": "lost a race", "gone": []}), flush=True)
        else:
            print(json.dumps({"table": name, "act": act.__name__, "gone": gone}), flush=True)


if __name__ == "__main__":
    main()
