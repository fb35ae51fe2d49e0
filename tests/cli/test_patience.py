from __future__ import annotations

import io
import sys
import threading

import pytest

from tests.waiting import SECONDS
from zenlake.cli import patience
from zenlake.cli.patience import ERASE, WaitNotice


class Terminal(io.StringIO):
    """A terminal that tells when something was written on it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def isatty(self) -> bool:
        return True

    def flush(self) -> None:
        self.written.set()


def test_a_terminal_shows_what_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(patience, "LONG", 0.0)
    with WaitNotice("measuring") as waiting:
        assert terminal.written.wait(SECONDS)
        waiting.clear()
    assert terminal.getvalue() == f"{ERASE}measuring … 0 s{ERASE}"


def test_what_is_quick_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with WaitNotice("measuring"):
        pass
    assert terminal.getvalue() == ""


def test_nothing_but_a_terminal_shows_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(patience, "LONG", 0.0)
    before = threading.active_count()
    with WaitNotice("measuring"):
        assert threading.active_count() == before
