from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from typing import cast

import pytest

from tests.waiting import SECONDS
from zenlake.engine.mutex import Mutex


@pytest.fixture(autouse=True)
def impatient() -> Iterator[None]:
    """Threads change places after every few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_who_comes_second_waits_until_the_first_has_gone() -> None:
    mutex = Mutex()
    entered = threading.Event()

    def second() -> None:
        mutex.acquire()
        entered.set()

    assert mutex.acquire()
    assert mutex.locked()
    thread = threading.Thread(target=second, daemon=True)
    thread.start()
    assert not entered.wait(0.05)
    mutex.release()
    assert entered.wait(SECONDS)
    thread.join(SECONDS)
    mutex.release()
    assert not mutex.locked()


def test_never_two_inside_and_nobody_is_forgotten() -> None:
    mutex = Mutex()
    inside: list[int] = []
    most: list[int] = []
    rounds = 500

    def work(name: int) -> None:
        for _ in range(rounds):
            mutex.acquire()
            inside.append(name)
            most.append(len(inside))
            inside.remove(name)
            mutex.release()

    threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()
    assert most == [1] * (8 * rounds)
    assert not mutex.locked()


class Alarm(Exception):
    """What a signal raises."""


def test_whoever_a_signal_takes_away_does_not_keep_the_others_waiting() -> None:
    taken_away = threading.Event()

    def ring(*_: object) -> None:
        if not taken_away.is_set():
            taken_away.set()
            raise Alarm

    mutex = Mutex()
    mutex.acquire()
    former = signal.signal(signal.SIGUSR1, ring)
    here = threading.get_ident()

    def interrupt() -> None:
        while not mutex._waiting:
            pass
        # Again and again: one that comes before the thread sleeps does not wake it.
        while not taken_away.wait(0.01):
            signal.pthread_kill(here, signal.SIGUSR1)

    caller = threading.Thread(target=interrupt, daemon=True)
    try:
        caller.start()
        with pytest.raises(Alarm):
            mutex.acquire()
        caller.join(SECONDS)
    finally:
        signal.signal(signal.SIGUSR1, former)
    entered = threading.Event()

    def other() -> None:
        mutex.acquire()
        entered.set()

    thread = threading.Thread(target=other, daemon=True)
    thread.start()
    while not mutex._waiting:
        assert thread.is_alive()
    mutex.release()
    assert entered.wait(SECONDS)


def test_a_condition_waits_and_is_notified_under_it() -> None:
    mutex = Mutex()
    room = threading.Condition(cast(threading.Lock, mutex))
    happened: list[str] = []

    def notify() -> None:
        with room:
            happened.append("notified")
            room.notify_all()

    with room:
        thread = threading.Thread(target=notify, daemon=True)
        thread.start()
        assert room.wait_for(lambda: bool(happened), SECONDS)
    thread.join(SECONDS)
    assert not mutex.locked()


def test_a_condition_that_is_not_held_cannot_be_waited_for() -> None:
    room = threading.Condition(cast(threading.Lock, Mutex()))
    with pytest.raises(RuntimeError):
        room.wait(0)
