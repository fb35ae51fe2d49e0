"""A note in the lake's folder while a step is at work: who finds it at the start knows of a death.

The note goes when a step succeeds, and stays after one that failed, so that a process that is
killed between two tries begins where the last one was. A store of objects wants to be paid for each
page that is put there, so it gets a note only after a failure.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, final

from zenlake.lake.table.location import LakeLocation

__all__ = ["NotedStep", "StepNote"]


@dataclass(frozen=True, slots=True)
class NotedStep:
    """What is known of a step that did not end."""

    rows: int = 0
    """Rows that it took; 0 if that cannot be read."""
    suspects: Sequence[Any] = ()
    """What `ingest/narrowing` had found by then."""


@final
class StepNote:
    """The note of one journal's steps: `.step-<journal>.json`."""

    def __init__(self, lake: LakeLocation, journal_id: str) -> None:
        """Look whether the last step of this journal has ended."""
        self._lake = lake
        self._name = f".step-{journal_id}.json"
        self.found: NotedStep | None = self._read()
        """The step that did not end, if one did not."""
        self._there = self.found is not None

    def begin(self, step: NotedStep) -> None:
        """Note a step that begins now; on a store of objects, only while a note is there."""
        if self._there or not self._lake.remote:
            self._write(step)

    def failed(self, step: NotedStep) -> None:
        """Note a step that failed, and what the next one should know of it."""
        self._write(step)

    def succeeded(self) -> None:
        """Take the note away."""
        if self._there:
            with suppress(OSError):
                self._lake.remove(self._name)
                self._there = False

    def _write(self, step: NotedStep) -> None:
        plain = {"rows": step.rows, "suspects": list(step.suspects)}
        # A lake that cannot be written says so elsewhere.
        with suppress(OSError):
            self._lake.write(self._name, json.dumps(plain).encode())
            self._there = True

    def _read(self) -> NotedStep | None:
        try:
            plain = json.loads(self._lake.read(self._name))
            return NotedStep(int(plain["rows"]), tuple(plain["suspects"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError):
            return NotedStep()  # the process died while it wrote the note
