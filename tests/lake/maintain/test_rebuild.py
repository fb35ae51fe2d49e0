from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.lake.crashing import dying
from tests.lake.journals import Here, R, rows_of, table_of, write
from tests.lake.rowsof import Row
from zenlake.errors import LocalError
from zenlake.lake import Pipeline, open, read_config
from zenlake.lake.ingest.spark_tasks import Work
from zenlake.lake.maintain.rebuild import Rebuilt, rebuild
from zenlake.lake.query.visibility import keys_behind

JSON = 5
FORMAT = 'format: "robot/${id}/battery"'
WHOLE = read_config(
    f'{{tables: {{battery: {{{FORMAT}, columns: {{percent: "bigint"}}}}}}, families: false}}'
)
DOUBLE = read_config(f"{{tables: {{battery: {{{FORMAT}}}}}}}")
PERCENTS = [87, 87.5, 3, 2.25, "full", 100.0]


def filled(tmp_path: Path) -> tuple[Path, Path]:
    """A lake whose table of whole numbers refused fractions."""
    lake, journal = tmp_path / "lake", tmp_path / "journal"
    for n, percent in enumerate(PERCENTS):
        payload = json.dumps({"percent": percent}).encode()
        write(journal, [Row(f"robot/{n}/battery", payload, n, encoding=JSON), Row("other", b"", n)])
        pipeline = Pipeline(str(lake), str(journal), Here(), WHOLE)
        pipeline.step()
    pipeline.finish()
    assert sorted(row["percent"] for row in rows_of(lake, "battery")) == [3, 87, 100]
    assert len(rows_of(lake, "quarantine")) == 3
    return lake, journal


def proven(lake: Path) -> None:
    found = sorted(row["percent"] for row in rows_of(lake, "battery"))
    assert found == [2.25, 3.0, 87.0, 87.5, 100.0]
    (bad,) = rows_of(lake, "quarantine")
    assert (bad["value"], bad["reason"], bad["field"]) == (
        b'{"percent": "full"}',
        "type",
        "percent",
    )


def test_what_fits_now_is_in_the_table_and_no_longer_in_quarantine(tmp_path: Path) -> None:
    lake, journal = filled(tmp_path)
    assert open(lake, config=DOUBLE).rebuild("battery", tasks=Here()) == Rebuilt(5, 1, 3, 3)
    proven(lake)
    # The pipeline goes on after it, and finds nothing to do.
    again = Here()
    pipeline = Pipeline(str(lake), str(journal), again, DOUBLE)
    assert pipeline.step().rows == 0
    write(journal, [Row("robot/9/battery", b'{"percent": 1.5}', 99, encoding=JSON)])
    pipeline.step()
    assert len(rows_of(lake, "battery")) == 6
    assert len(rows_of(lake, "quarantine")) == 1


def test_other_tables_keep_what_they_refused(tmp_path: Path) -> None:
    lake, journal = filled(tmp_path)
    other = f'other: {{{FORMAT}, encoding: "application/cbor"}}'
    both = read_config(f"{{tables: {{battery: {{{FORMAT}}}, {other}}}}}")
    pipeline = Pipeline(str(lake), str(journal), Here(), both)
    pipeline.step()
    assert len(rows_of(lake, "quarantine")) > 3
    open(lake).compact(tasks=Here())
    kept = [row for row in rows_of(lake, "quarantine") if row["table"] == "other"]
    open(lake, config=both).rebuild("battery", tasks=Here())
    assert [row for row in rows_of(lake, "quarantine") if row["table"] == "other"] == kept
    assert len(rows_of(lake, "battery")) == 5


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("table", ["battery", "quarantine"])
def test_killed_between_its_commits_it_is_finished_by_whoever_comes_next(
    tmp_path: Path, table: str, after: bool
) -> None:
    lake, journal = filled(tmp_path)
    with dying(after=after, of=lambda uri: table in uri):
        open(lake, config=DOUBLE).rebuild("battery", tasks=Here())
    if table == "battery" and not after:
        assert len(rows_of(lake, "battery")) == 3
        open(lake, config=DOUBLE).rebuild("battery", tasks=Here())
    Pipeline(str(lake), str(journal), Here(), DOUBLE)
    proven(lake)


def test_a_pipeline_that_runs_meanwhile_loses_and_doubles_nothing(tmp_path: Path) -> None:
    lake, journal = filled(tmp_path)
    pipeline = Pipeline(str(lake), str(journal), Here(), DOUBLE)

    class Meanwhile(Here):
        """While the table is made again, more is heard, twice."""

        times = 2

        def run(self, items: Sequence[Work[R]], what: str) -> list[R]:
            done = super().run(items, what)
            if what.startswith("rebuild") and self.times:
                self.times -= 1
                payload = json.dumps({"percent": 50 + self.times, "more": self.times}).encode()
                write(journal, [Row(f"robot/{self.times}/battery", payload, 50, encoding=JSON)])
                pipeline.step()
            return done

    rebuild(pipeline.place, DOUBLE.tables[0], Meanwhile())
    while pipeline.step().behind:
        pass
    rows = rows_of(lake, "battery")
    assert sorted(row["percent"] for row in rows) == [2.25, 3.0, 50.0, 51.0, 87.0, 87.5, 100.0]
    assert len({(row["partition"], row["offset"]) for row in rows}) == 7
    assert sorted(row["more"] for row in rows if row["more"] is not None) == [0, 1]
    assert len(rows_of(lake, "quarantine")) == 1
    assert str(table_of(lake, "battery").schema.field("percent").type) == "double"


def test_a_table_whose_format_changed_tells_its_old_keys_until_it_is_made_again(
    tmp_path: Path,
) -> None:
    lake, journal = filled(tmp_path)
    moved = read_config('{tables: {battery: {format: "bot/${id}/battery"}}}')

    def keys() -> tuple[str, ...]:
        return keys_behind({"battery": table_of(lake, "battery").described}, moved.tables)

    for _ in range(2):
        Pipeline(str(lake), str(journal), Here(), moved)
        assert keys() == ("**",)
    open(lake, config=moved).rebuild("battery", tasks=Here())
    assert keys() == ("bot/*/battery",)
    Pipeline(str(lake), str(journal), Here(), moved)
    assert keys() == ("bot/*/battery",)


def test_only_typed_tables_can_be_made_again(tmp_path: Path) -> None:
    lake, _ = filled(tmp_path)
    with pytest.raises(LocalError, match="did you mean 'battery'"):
        open(lake, config=DOUBLE).rebuild("batery", tasks=Here())
    with pytest.raises(LocalError, match="no typed table 'samples'"):
        open(lake, config=DOUBLE).rebuild("samples", tasks=Here())
