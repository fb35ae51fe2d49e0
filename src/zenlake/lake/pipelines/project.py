"""A folder with the files of a pipeline: which they are, whether they changed, and loading them.

    pipelines/
        spark-pipeline.yml        # if there is one; the same that `spark-pipelines run` reads
        energy.py
        low.sql

Without that file every `.py` and `.sql` below the folder belongs to the pipeline, and its name is
that of the folder.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from pyspark.errors import PySparkException
from pyspark.pipelines.graph_element_registry import graph_element_registration_context

from zenlake.errors import LocalError
from zenlake.lake.pipelines.definitions import PipelineDefinitions, PipelineError
from zenlake.lake.pipelines.sql_definitions import read_sql
from zenlake.lake.query.executor import one_line
from zenlake.spark import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SPEC_NAMES", "Project", "load", "open_project", "raised_in"]

SPEC_NAMES: Final = ("spark-pipeline.yml", "spark-pipeline.yaml")
_FIELDS: Final = (
    "name", "storage", "catalog", "database", "schema", "configuration", "libraries",
)  # fmt: skip
MOST_FILES: Final = 1000
MOST_FILE_BYTES: Final = 4 << 20


@final
@dataclass(frozen=True, slots=True)
class Project:
    """A pipeline as its folder says it."""

    folder: Path
    name: str
    #: Settings of Spark for all of its queries.
    configuration: Mapping[str, str] = field(default_factory=dict)
    #: Which files belong to it, as `spark-pipeline.yml` names them.
    patterns: tuple[str, ...] = ("**/*",)

    def files(self) -> list[Path]:
        """Return the files of definitions, in the order of their names."""
        found: set[Path] = set()
        for pattern in self.patterns:
            for path in self.folder.glob(pattern):
                inside = path.relative_to(self.folder).parts
                hidden = any(part.startswith((".", "__pycache__")) for part in inside)
                if path.suffix in (".py", ".sql") and not hidden and path.is_file():
                    found.add(path)
                if len(found) > MOST_FILES:
                    raise PipelineError(
                        f"a pipeline has at most {MOST_FILES} files", str(self.folder)
                    )
        return sorted(one for one in found if not _is_test(one.relative_to(self.folder)))

    def fingerprint(self) -> str:
        """Return a word that changes when a file of the pipeline does."""
        digest = hashlib.sha256(repr((self.name, sorted(self.configuration.items()))).encode())
        for path in self.files():
            there = path.stat()
            digest.update(f"{path}\0{there.st_mtime_ns}\0{there.st_size}\0".encode())
        return digest.hexdigest()


def _is_test(path: Path) -> bool:
    """Return True for files of pytest, which may lie beside what they test."""
    return path.name.startswith("test_") or path.name == "conftest.py" or "tests" in path.parts[:-1]


def open_project(folder: Path) -> Project:
    """Read what a folder says of its pipeline. Raises `PipelineError` if it is not one."""
    if not folder.is_dir():
        raise PipelineError(
            f"there is no folder {folder}; `zenlake pipeline init {folder}` makes one"
        )
    folder = folder.resolve()
    specs = [folder / name for name in SPEC_NAMES if (folder / name).is_file()]
    if not specs:
        return Project(folder, _project_name(folder.name, str(folder)))
    if len(specs) > 1:
        raise PipelineError(f"there are both {' and '.join(SPEC_NAMES)}; keep one", str(folder))
    return _read_spec(folder, specs[0])


def _read_spec(folder: Path, file: Path) -> Project:
    import yaml

    at = str(file)
    try:
        page = yaml.safe_load(file.read_text("utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise PipelineError(f"it cannot be read: {error}", at) from error
    if not isinstance(page, dict):
        raise PipelineError("it has no fields; write `name: …` and `libraries: …`", at)
    for key in page:
        if key not in _FIELDS:
            raise PipelineError(f"there is no field '{key}'; there are {', '.join(_FIELDS)}", at)
    settings = page.get("configuration") or {}
    if not isinstance(settings, dict) or not all(isinstance(one, str) for one in settings.values()):
        raise PipelineError("configuration: values are texts, such as '8'; quote them", at)
    patterns = []
    for library in page.get("libraries") or [{"glob": {"include": "**"}}]:
        try:
            pattern = str(library["glob"]["include"])
        except (TypeError, KeyError) as error:
            raise PipelineError(
                "libraries: write `- glob: {include: transformations/**}`", at
            ) from error
        if ".." in Path(pattern).parts or Path(pattern).is_absolute():
            raise PipelineError(f"libraries: '{pattern}' leaves the folder of the pipeline", at)
        patterns.append(f"{pattern}/*" if pattern.endswith("**") else pattern)
    name = _project_name(str(page.get("name") or folder.name), at)
    return Project(folder, name, settings, tuple(patterns))


def _project_name(name: str, at: str) -> str:
    plain = name.replace("-", "_").replace(" ", "_")
    if not plain.replace("_", "a").isalnum() or len(plain) > 100:
        raise PipelineError(
            f"'{name}' cannot name a pipeline; use letters, digits, '-' and '_'", at
        )
    return plain


def load(project: Project, spark: SparkSession) -> PipelineDefinitions:
    """Import the files of a pipeline; returns what they define.

    `spark`: what files see under this name. Raises `PipelineError`, with file and line, for
    whatever a file raises.
    """
    definitions = PipelineDefinitions(project.folder)
    # Definitions of changes import what warns of it, whether or not anybody uses pandas.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    # Files may ask for SparkSession.active() instead.
    with (
        _imports_from(project.folder),
        jvm.current(spark),
        graph_element_registration_context(definitions),
    ):
        for path in project.files():
            text = _content(path).decode("utf-8", "replace")
            if path.suffix == ".sql":
                read_sql(spark, definitions, text, path.relative_to(project.folder))
            else:
                _import(path, project, spark)
    definitions.demand_complete()
    return definitions


def _import(path: Path, project: Project, spark: SparkSession) -> None:
    # A name that no module of the user's has: files of two pipelines may be called the same.
    name = f"_zenlake_pipeline_{project.name}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PipelineError("it is no file of Python", str(path))
    module = importlib.util.module_from_spec(spec)
    module.__dict__["spark"] = spark
    try:
        spec.loader.exec_module(module)
    except PipelineError:
        raise
    except (Exception, SystemExit) as error:
        raise raised_in(error, project.folder, str(path.relative_to(project.folder))) from error


def raised_in(error: BaseException, folder: Path, otherwise: str) -> PipelineError:
    """Return what a user's code raised, with the line of the user's file that it came from."""
    place = otherwise
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        place = f"{_inside(error.filename, folder) or error.filename}:{error.lineno}"
    else:
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            inside = _inside(frame.filename, folder)
            if inside:
                place = f"{inside}:{frame.lineno}"
                break
    text = one_line(str(error)) if isinstance(error, PySparkException) else str(error)
    named = "" if isinstance(error, PySparkException | LocalError) else f"{type(error).__name__}: "
    return PipelineError(f"{named}{text.strip().partition(chr(10))[0]}", place)


def _inside(file: str, folder: Path) -> str:
    try:
        return str(Path(file).resolve().relative_to(folder))
    except ValueError:
        return ""


@contextmanager
def _imports_from(folder: Path) -> Iterator[None]:
    """Let files import helper modules of their folder; what they import is read anew each time."""
    before: dict[str, Any] = dict(sys.modules)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None) or ""
            if name not in before and _inside(file, folder):
                del sys.modules[name]


def _content(path: Path) -> bytes:
    size = path.stat().st_size
    if size > MOST_FILE_BYTES:
        raise PipelineError(f"it has {size} bytes; at most {MOST_FILE_BYTES} are read", str(path))
    return path.read_bytes()
