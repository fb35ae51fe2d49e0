"""Checks the subjects of commits: at most 72 characters, and the room first.

    python tools/commits.py                    # every commit since the rule began
    python tools/commits.py --message FILE     # a message that is about to be committed

A subject reads `lake: commit in smaller steps after a failure`. The rooms are the folders and
modules of `src/zenlake`, the folders beside `src`, and the words in `OTHER_ROOMS`. Merges and
reverts keep the subjects that git gives them. Without a history nothing is checked.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FIRST = "b12713d4b6ff7dedc07384fb0e1ab86694824e16"
"""The last commit that the rule does not apply to."""
SINCE = "ZENLAKE_COMMITS_SINCE"
"""Environment variable: a commit to use instead of `FIRST`."""
MAX_SUBJECT_CHARACTERS = 72
OTHER_ROOMS = frozenset({"build", "ci"})
"""Rooms without a folder: the Makefile and packaging; the workflows."""

SUBJECT = re.compile(r"(?P<rooms>[\w.-]+(?:, [\w.-]+)*): \S.*")
UNFINISHED = ("Merge ", "amend! ", "fixup! ", "squash! ")
"""How messages begin that git wrote, and that are a merge's or go into another commit."""
REVERT = re.compile(r'Re(vert|apply) "')


class Unchecked(Exception):
    """There is no history to check; the message says why."""


class Commit(NamedTuple):
    """One commit of the history."""

    id: str
    message: str


def complaints(message: str, rooms: Iterable[str]) -> list[str]:
    """Return what is wrong with a commit's message, a sentence each."""
    subject, _, rest = message.partition("\n")
    if REVERT.match(subject):
        return []
    found = []
    if len(subject) > MAX_SUBJECT_CHARACTERS:
        found.append(
            f"the subject has {len(subject)} characters, {MAX_SUBJECT_CHARACTERS} are allowed: "
            "move the why to the body"
        )
    if rest and not rest.startswith("\n"):
        found.append("the second line is not empty: separate the subject from the body")
    parts = SUBJECT.fullmatch(subject)
    if parts is None:
        found.append("the subject does not begin with a room: write `lake: …` or `docs: …`")
    else:
        unknown = sorted(set(parts["rooms"].split(", ")) - set(rooms))
        if unknown:
            found.append(f"'{unknown[0]}' is no room; rooms are {', '.join(sorted(rooms))}")
    return found


def rooms_of(paths: Iterable[str]) -> frozenset[str]:
    """Return the rooms of a tree, given the paths of its files."""
    rooms = set(OTHER_ROOMS)
    for path in paths:
        match path.split("/"):
            case ["src", "zenlake", module] if module.endswith(".py") and module[0] != "_":
                rooms.add(module.removesuffix(".py"))
            case ["src", "zenlake", _]:
                pass
            case ["src", "zenlake", folder, *_]:
                rooms.add(folder)
            case ["src", folder, _, *_] | [folder, _, *_] if folder != "src" and folder[0] != ".":
                rooms.add(folder)
    return frozenset(rooms)


def history(root: Path, since: str) -> list[Commit]:
    """Return the commits after `since`, newest first, without merges."""
    top = _git(root, "rev-parse", "--show-toplevel").strip()
    if Path(top).resolve() != root.resolve():
        raise Unchecked(f"{root} is not the root of a git repository")
    try:
        _git(root, "merge-base", "--is-ancestor", since, "HEAD")
    except Unchecked:
        raise Unchecked(f"the history does not reach back to {since[:7]}") from None
    told = _git(root, "log", "--no-merges", "--format=%H%n%B%x00", f"{since}..HEAD")
    return [Commit(*one.strip("\n").split("\n", 1)) for one in told.split("\0") if one.strip()]


def rooms_at(root: Path, *commits: str) -> frozenset[str]:
    """Return the rooms of commits."""
    trees = (_git(root, "ls-tree", "-r", "--name-only", commit) for commit in commits)
    return rooms_of(path for tree in trees for path in tree.splitlines())


def wrong_commits(root: Path, commits: list[Commit]) -> list[str]:
    """Return the commits that break the rule, each with what is wrong."""
    rooms = rooms_at(root, "HEAD")
    wrong = []
    for commit in commits:
        if complaints(commit.message, rooms):
            # A room may have been there then, or have been removed by this commit.
            then = rooms_at(root, commit.id, f"{commit.id}^")
            subject = commit.message.partition("\n")[0]
            for complaint in complaints(commit.message, rooms | then):
                wrong.append(f"{commit.id[:7]} {subject}\n    {complaint}")
    return wrong


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True
        )
    except OSError as error:
        raise Unchecked(f"git does not run: {error}") from error
    except subprocess.CalledProcessError as error:
        first = error.stderr.partition("\n")[0]
        raise Unchecked(first or f"git {arguments[0]} failed") from error
    return done.stdout


def check_history(root: Path, since: str) -> int:
    """Print what is wrong with the commits after `since`; return the exit code."""
    try:
        commits = history(root, since)
        wrong = wrong_commits(root, commits)
    except Unchecked as why:
        print(f"commits: no subject was checked: {why}")
        return 0
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 1
    print(f"commits: {len(commits)} subjects since {since[:7]} are fine")
    return 0


def check_message(root: Path, file: Path) -> int:
    """Print what is wrong with a message that is about to be committed; return the exit code."""
    text = file.read_text(encoding="utf-8")
    if text.startswith(UNFINISHED):
        return 0
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    found = complaints("\n".join(lines).strip(), rooms_of(_git(root, "ls-files").splitlines()))
    for complaint in found:
        print(f"commits: {complaint}", file=sys.stderr)
    return 1 if found else 0


def main() -> int:
    """Check the history, or one message."""
    options = argparse.ArgumentParser(description="Check the subjects of commits.")
    options.add_argument("--message", type=Path, metavar="FILE", help="check this message alone")
    chosen = options.parse_args()
    if chosen.message is not None:
        return check_message(ROOT, chosen.message)
    return check_history(ROOT, os.environ.get(SINCE) or FIRST)


if __name__ == "__main__":
    sys.exit(main())
