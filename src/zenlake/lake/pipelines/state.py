"""What a lake keeps of a pipeline beside its tables: how far each flow is, and the last good files.

    .pipelines/NAME/state.json                 a line of facts for each flow and materialized view
    .pipelines/NAME/checkpoints/FLOW/2/        Spark's checkpoint of the flow's third generation
    .pipelines/NAME/good/                      the files that were analysed without an error last

A full refresh begins a new generation of a flow: another checkpoint, and another application in the
log of its table, so nothing of the generation before can come in later. The table is emptied in
between; what was begun is noted first and ended at the next start.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final, final

from zenlake.errors import LocalError

__all__ = ["FOLDER", "ElementState", "PipelineState", "known_pipelines", "pipelines_folder"]

FOLDER: Final = ".pipelines"


@final
@dataclass(frozen=True, slots=True)
class ElementState:
    """How far a flow or a materialized view is."""

    #: Names its batches in the log of the table, together with the generation.
    id: str
    #: The table or the sink that it fills.
    target: str = ""
    generation: int = 0
    #: A word for the text that it is defined by.
    definition: str = ""
    #: A full refresh was begun: the table is to be emptied before the flow runs.
    is_emptying: bool = False
    #: For a materialized view: the version of each input that it was computed from.
    inputs: dict[str, int] = field(default_factory=dict)
    #: When it was computed last, in seconds since 1970.
    refreshed: float = 0.0

    @property
    def application(self) -> str:
        """What its commits are called in the log of a Delta table."""
        return f"pipeline/{self.id}/{self.generation}"


@final
class PipelineState:
    """The state of one pipeline, kept over a loss of power."""

    def __init__(self, folder: Path) -> None:
        """`folder`: `.pipelines/NAME` of the lake."""
        self.folder = folder
        self._page = folder / "state.json"
        self._elements: dict[str, ElementState] = {}
        self.source = ""
        """The folder that the pipeline was loaded from last."""
        self._read()

    def _read(self) -> None:
        try:
            page = json.loads(self._page.read_text("utf-8"))
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            raise LocalError(
                f"{self._page} cannot be read ({error}); with it gone every flow begins anew: "
                "reset the tables of the pipeline too"
            ) from error
        self.source = page["source"]
        self._elements = {name: ElementState(**one) for name, one in page["elements"].items()}

    def element(self, name: str) -> ElementState:
        """Return how far a flow or a view is; a new one is entered."""
        if name not in self._elements:
            self.put(name, ElementState(uuid.uuid4().hex))
        return self._elements[name]

    def known(self) -> dict[str, ElementState]:
        """Return every flow and view that ever ran."""
        return dict(self._elements)

    def put(self, name: str, element: ElementState) -> None:
        """Keep how far a flow or a view is."""
        self._elements[name] = element
        self._write()

    def set_source(self, source: str) -> None:
        """Keep where the files of the pipeline are."""
        if source != self.source:
            self.source = source
            self._write()

    def begin_refresh(self, name: str) -> None:
        """Begin a new generation of a flow whose table is to be emptied first."""
        before = self.element(name)
        self.put(
            name,
            replace(
                before, generation=before.generation + 1, is_emptying=True, inputs={}, refreshed=0.0
            ),
        )

    def end_refresh(self, name: str) -> None:
        """Note that the table was emptied, and remove older checkpoints."""
        element = self.element(name)
        self.put(name, replace(element, is_emptying=False))
        folder = self.folder / "checkpoints" / name
        for old in folder.glob("[0-9]*"):
            if old.name != str(element.generation):
                shutil.rmtree(old, ignore_errors=True)

    def checkpoint(self, name: str) -> Path:
        """Return the folder of a flow's checkpoint."""
        return self.folder / "checkpoints" / name / str(self.element(name).generation)

    def keep_good(self, folder: Path, files: list[Path]) -> None:
        """Keep a copy of files that were analysed without an error."""
        fresh = self.folder / f"good.{os.getpid()}"
        shutil.rmtree(fresh, ignore_errors=True)
        for file in files:
            copy = fresh / file.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
        fresh.mkdir(exist_ok=True)
        good = self.good()
        shutil.rmtree(good, ignore_errors=True)
        fresh.rename(good)

    def good(self) -> Path:
        """Return the folder with the files that were analysed without an error last."""
        return self.folder / "good"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let nobody else run this pipeline meanwhile; raises `LocalError` if somebody does."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self.folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise LocalError(
                    f"the pipeline '{self.folder.name}' is run by another program, such as "
                    "`zenlake up`; stop it first, or give this one another name"
                ) from error
            yield

    def _write(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        page = {
            "source": self.source,
            "elements": {name: asdict(one) for name, one in self._elements.items()},
        }
        fresh = self._page.with_suffix(".new")
        with fresh.open("w", encoding="utf-8") as file:
            file.write(json.dumps(page, indent=1))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._page)


def pipelines_folder(lake: str) -> Path:
    """Return the folder of the pipelines of a lake; raises if the lake is in an object store."""
    if "://" in lake:
        raise LocalError(
            f"how far pipelines are is kept in a folder of this machine, and {lake} is none; say "
            "where with --state"
        )
    return Path(lake) / FOLDER


def known_pipelines(folder: Path) -> dict[str, PipelineState]:
    """Return the pipelines that ever ran, by name."""
    found = sorted(one.parent for one in folder.glob("*/state.json"))
    return {one.name: PipelineState(one) for one in found}
