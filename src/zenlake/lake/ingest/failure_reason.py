"""Why something failed, in one line of words; and what a failed job of Spark says of its task.

Spark raises `Py4JJavaError: An error occurred while calling z:…collectAndServe` and a page of
Java, or `PythonException` and the traceback of the worker. `failure_of` reads from that page what
happened to which task how often; such pages are in `tests/lake/ingest/spark_failures`.
"""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from zenlake.errors import ZError

__all__ = ["Cause", "JobFailure", "WorkFailed", "failure_of", "is_disk_full", "reason_of"]

LONGEST: Final = 300

_WORDS: Final = (
    ("No space left on device", "the disk is full"),
    ("Disk quota exceeded", "the disk quota is used up"),
    ("Read-only file system", "the filesystem is read-only"),
    ("Permission denied", "permission denied"),
    ("Too many open files", "too many files are open"),
)
_FULL: Final = (
    "no space left on device", "disk quota exceeded", "the disk is full",
    "the disk quota is used up",
)  # fmt: skip
_NUMBERS: Final = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the filesystem is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EMFILE: "too many files are open",
}
_JAVA: Final = re.compile(
    r"^(?:Caused by)?: (?:[\w.$]+\.)?(\w+(?:Error|Exception)): (.+)$", re.MULTILINE
)
_TASK: Final = re.compile(r"stage failure: Task (\d+) in stage [\d.]+ failed (\d+) times?")
_NOTED: Final = re.compile(r"^zenlake, task (\d+)$", re.MULTILINE)
_EXECUTOR: Final = re.compile(r"ExecutorLostFailure \(.*\) Reason: (.+)")
_MEMORY: Final = re.compile(
    r"^(?:[\w.]*\.)?(?:Arrow)?MemoryError(?:: (.+))?$|OutOfMemoryError(?:: (.+))?$", re.MULTILINE
)
_RAISED: Final = re.compile(
    r"^(?:[\w.]+\.)?(\w*(?:Error|Exception|Interrupt)): (.+)$", re.MULTILINE
)
_PATH: Final = re.compile(r"'(/[^'\n]+)'|\"(/[^\"\n]+)\"|(?<![\w/])(/[\w.@+-]+(?:/[\w.@+=-]+)+)")


class Cause(StrEnum):
    """What kind of failure it was, as far as it matters for the next try."""

    DIED = "died"
    """The process that did the work ended without a word."""
    MEMORY = "memory"
    """There was too little memory."""
    OTHER = "other"
    """An error was raised; the reason says which."""


@dataclass(frozen=True, slots=True)
class JobFailure:
    """What the text of a failed job says."""

    cause: Cause
    reason: str
    """In one line."""
    task: int | None = None
    """The task that failed, by its number in the job, if the text names it."""
    times: int = 1
    """How often Spark tried it."""


class WorkFailed(ZError):
    """Work that tasks could not do; the message says why, which work, and how often."""

    def __init__(self, failure: JobFailure, what: str, subject: str = "") -> None:
        """`what`: the job in words; `subject`: what the failed task was to read, if it is known."""
        tried = f"{failure.times} times in a row" if failure.times > 1 else ""
        where = ", ".join(part for part in (what, subject, tried) if part)
        super().__init__(f"{failure.reason} ({where})")
        self.failure = failure

    @property
    def died(self) -> bool:
        """Whether the process that did the work ended without a word."""
        return self.failure.cause is Cause.DIED


def failure_of(error: BaseException) -> JobFailure:
    """Return what a job of Spark failed with."""
    text = str(error)
    aborted, noted = _TASK.search(text), _NOTED.findall(text)
    task = int(aborted[1]) if aborted else int(noted[-1]) if noted else None
    times = int(aborted[2]) if aborted else 1
    lost, memory = _EXECUTOR.search(text), _MEMORY.search(text)
    if "Python worker exited unexpectedly" in text:
        return JobFailure(Cause.DIED, "a Python worker of Spark died", task, times)
    if lost:
        return JobFailure(Cause.DIED, _line(f"an executor of Spark died: {lost[1]}"), task, times)
    if memory:
        detail = next((part for part in memory.groups() if part), "")
        words = "too little memory" + (f": {detail}" if detail else "")
        return JobFailure(Cause.MEMORY, _line(words), task, times)
    return JobFailure(Cause.OTHER, reason_of(error), task, times)


def reason_of(error: BaseException) -> str:
    """Why something failed, in one line: what a disk says in words, else the innermost error.

    Errors of Spark's tasks carry the traceback of the worker as text; its last line is what
    happened there.
    """
    if isinstance(error, WorkFailed):
        return " ".join(str(error).split())
    text = str(error) or type(error).__name__
    path = error.filename if isinstance(error, OSError) else None
    if isinstance(error, OSError) and error.errno in _NUMBERS:
        return _at(_NUMBERS[error.errno], path or _path_in(text))
    for words, plain in _WORDS:
        # Of a traceback the line that says it, not those that name files of programs.
        lines = [line for line in text.splitlines() if words.lower() in line.lower()]
        if lines:
            return _at(plain, path or _path_in(lines[-1]))
    raised = _RAISED.findall(text)
    if raised:
        name, said = raised[-1]
        return _line(
            said if name in ("ZError", "JournalError", "LocalError") else f"{name}: {said}"
        )
    java = _JAVA.findall(text)
    if java:
        name, said = java[-1]
        return _line(said if name == "SparkException" else f"{name}: {said}")
    name = "" if type(error).__module__.startswith("zenlake") else f"{type(error).__name__}: "
    return _line(f"{name}{text}" if str(error) else text)


def is_disk_full(error: BaseException) -> bool:
    """Return True if there was no room on a disk, or no quota, here or in a task."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    text = str(error).lower()
    return any(words in text for words in _FULL)


def _path_in(text: str) -> str | None:
    match = _PATH.search(text)
    return next((part for part in match.groups() if part), None) if match else None


def _at(words: str, path: object) -> str:
    return words if path is None else f"{words}: {path}"


def _line(text: str) -> str:
    first = " ".join(text.strip().partition("\n")[0].split())
    return first if len(first) <= LONGEST else f"{first[:LONGEST]}…"
