from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools.commits import (
    Unchecked,
    check_history,
    check_message,
    complaints,
    history,
    rooms_of,
    wrong_commits,
)

ROOMS = {"lake", "docs", "build"}


class Repository:
    """A git repository of a test's own; who commits and how is not that of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("config", "user.name", "A")
        self.git("config", "user.email", "a@example.org")
        self.git("config", "commit.gpgsign", "false")
        self.git("config", "core.hooksPath", "none")

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def commit(self, message: str, *files: str) -> str:
        for file in files:
            path = self.folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(message)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", f"--message={message}")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    folder = tmp_path / "repository"
    folder.mkdir()
    return Repository(folder)


@pytest.mark.parametrize(
    "message",
    [
        "lake: commit in smaller steps after a failure",
        "lake: " + "x" * 66,
        "lake, docs: rename a table\n\nIts name was that of another.",
        'Revert "Something that was never allowed to be so long, but is what git writes for us"',
    ],
)
def test_a_subject_that_begins_with_its_room_is_fine(message: str) -> None:
    assert complaints(message, ROOMS) == []


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        ("lake: " + "x" * 67, "the subject has 73 characters, 72 are allowed"),
        ("Commit in smaller steps", "does not begin with a room"),
        ("lake:commit", "does not begin with a room"),
        ("lake: ", "does not begin with a room"),
        ("lakes: commit", "'lakes' is no room; rooms are build, docs, lake"),
        ("lake, lakes: commit", "'lakes' is no room"),
        ("lake: commit\nwhy", "the second line is not empty"),
        ("", "does not begin with a room"),
    ],
)
def test_a_subject_of_another_form_is_told_what_to_write(message: str, complaint: str) -> None:
    (found,) = complaints(message, ROOMS)
    assert complaint in found


def test_rooms_are_folders_and_modules_of_the_package_and_folders_beside_it() -> None:
    paths = [
        "README.md",
        ".github/workflows/ci.yml",
        "docs/index.md",
        "src/other/__init__.py",
        "src/zenlake/__init__.py",
        "src/zenlake/errors.py",
        "src/zenlake/lake/continuous/query_shape.py",
        "src/zenlake/py.typed",
    ]
    assert rooms_of(paths) == {"build", "ci", "docs", "errors", "lake", "other"}


def test_only_commits_after_the_first_are_checked_and_merges_are_not(
    repository: Repository,
) -> None:
    first = repository.commit("Before there was a rule", "docs/a.md")
    repository.git("checkout", "--quiet", "-b", "other")
    repository.commit("docs: write b", "docs/b.md")
    repository.git("checkout", "--quiet", "main")
    wrong = repository.commit("Write c", "docs/c.md")
    repository.git("merge", "--quiet", "--no-ff", "--message=Merge branch other", "other")
    commits = history(repository.folder, first)
    assert sorted(commit.message for commit in commits) == ["Write c", "docs: write b"]
    (found,) = wrong_commits(repository.folder, commits)
    assert found.startswith(f"{wrong[:7]} Write c\n")


def test_a_room_is_one_of_the_tree_that_was_committed(repository: Repository) -> None:
    first = repository.commit("Before there was a rule", "src/zenlake/lake/a.py")
    repository.commit("pond: add a room", "src/zenlake/pond/b.py")
    repository.git("rm", "--quiet", "-r", "src/zenlake/pond")
    repository.commit("pond: remove it again")
    assert wrong_commits(repository.folder, history(repository.folder, first)) == []
    repository.commit("pond: nothing is there any more")
    assert len(wrong_commits(repository.folder, history(repository.folder, first))) == 1


def test_a_wrong_subject_fails_and_says_which(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    first = repository.commit("Before there was a rule", "docs/a.md")
    repository.commit("docs: write b", "docs/b.md")
    assert check_history(repository.folder, first) == 0
    assert capsys.readouterr().out == f"commits: 1 subjects since {first[:7]} are fine\n"
    repository.commit("Write c", "docs/c.md")
    assert check_history(repository.folder, first) == 1
    assert "Write c" in capsys.readouterr().err


def test_a_shallow_clone_passes_and_says_that_nothing_was_checked(
    repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = repository.commit("Before there was a rule", "docs/a.md")
    repository.commit("Write b", "docs/b.md")
    shallow = tmp_path / "shallow"
    repository.git("clone", "--quiet", "--depth=1", repository.folder.as_uri(), str(shallow))
    assert check_history(shallow, first) == 0
    assert capsys.readouterr().out == (
        f"commits: no subject was checked: the history does not reach back to {first[:7]}\n"
    )


def test_a_folder_without_history_passes_and_says_so(
    repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = repository.commit("Before there was a rule", "docs/a.md")
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    assert check_history(unpacked, first) == 0
    assert capsys.readouterr().out.startswith("commits: no subject was checked: ")
    with pytest.raises(Unchecked, match="is not the root of a git repository"):
        history(repository.folder / "docs", first)


def test_a_message_is_checked_before_it_is_committed(
    repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.commit("Before there was a rule", "docs/a.md")
    message = tmp_path / "message"
    for text in ("docs: write b\n\nWhy.\n# a comment of git\n", "fixup! docs: write b\n"):
        message.write_text(text)
        assert check_message(repository.folder, message) == 0
    message.write_text("Write b\n")
    assert check_message(repository.folder, message) == 1
    assert "does not begin with a room" in capsys.readouterr().err
