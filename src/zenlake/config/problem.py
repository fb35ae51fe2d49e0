"""What is wrong with a configuration, and where.

A configuration is read to its end before anything is refused: every wrong key and value becomes
a `Problem`, and one `InvalidConfig` carries them all. What a stranger writes may hold any number
of mistakes, so a report keeps the first hundred and counts the rest.
"""

from __future__ import annotations

import re
from dataclasses import field

from zenlake.config.json5 import write_json
from zenlake.errors import ConfigError
from zenlake.records import record

__all__ = ["ConfigWarning", "InvalidConfig", "Problem", "Report", "line_and_column", "shown"]

MOST_PROBLEMS = 100
_LINE_END = r"\r\n|[\n\r]"


class ConfigWarning(UserWarning):
    """A configuration asks for something that is accepted, with no effect or a surprising one."""


@record(frozen=True, slots=True)
class Problem:
    """One mistake: the key it concerns, what is wrong, and its place (0 when unknown)."""

    path: str
    message: str
    line: int = 0
    column: int = 0

    def sentence(self, source: str = "") -> str:
        """The problem as `source:line:column: path: message`, without the parts not known."""
        place = source
        if source and self.line:
            place = f"{source}:{self.line}:{self.column}"
        return ": ".join(part for part in (place, self.path, self.message) if part)


class InvalidConfig(ConfigError):
    """A configuration with all the problems that were found in it."""

    def __init__(self, problems: tuple[Problem, ...], source: str = "", left_out: int = 0) -> None:
        """Join the problems into one message; `left_out` counts those beyond the report's bound."""
        self.problems = problems
        self.source = source
        self.left_out = left_out
        lines = [problem.sentence(source) for problem in problems]
        if left_out:
            lines.append(f"and {left_out} more")
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[type[InvalidConfig], tuple[tuple[Problem, ...], str, int]]:
        return (InvalidConfig, (self.problems, self.source, self.left_out))


@record(slots=True)
class Report:
    """The problems found so far in one text."""

    text: str = ""
    source: str = ""
    paths: tuple[str, ...] = ()
    """The paths that exist, for suggestions."""
    problems: list[Problem] = field(default_factory=list)
    left_out: int = 0

    @property
    def full(self) -> bool:
        """Whether a further problem would only be counted; its wording need not be worked out."""
        return len(self.problems) >= MOST_PROBLEMS

    def add(self, path: tuple[str, ...], message: str, offset: int = -1) -> None:
        """Note a problem of the key at `path`, found at `offset` of the text (-1: nowhere)."""
        if self.full:
            self.left_out += 1
            return
        line, column = line_and_column(self.text, offset) if offset >= 0 else (0, 0)
        self.problems.append(Problem("/".join(path), message, line, column))

    def close(self) -> None:
        """Raise `InvalidConfig` if anything was found."""
        if self.problems:
            ordered = sorted(self.problems, key=lambda problem: (problem.line, problem.column))
            raise InvalidConfig(tuple(ordered), self.source, self.left_out)


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """The line and column of `offset`, both counted from one, as editors count them."""
    line, start = 1, 0
    for end in re.finditer(_LINE_END, text[:offset]):
        line += 1
        start = end.end()
    return line, offset - start + 1


def shown(value: object) -> str:
    """A value as it would be written, cut to a length that fits in a message."""
    text = write_json(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
