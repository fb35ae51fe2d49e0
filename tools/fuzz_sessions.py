"""Speaks to nodes in every role, in sessions that are open, and lies: nothing may come out of it.

    python -m tools.fuzz_sessions --seconds 60
    python -m tools.fuzz_sessions --seed 7 --messages 10000000

Against routers, peers and clients stand strangers that are routers, peers and clients: they
declare, undeclare, ask, answer, publish, speak of routers, send fragments, in words that are right,
nearly right, or damaged. The broker of the 2018 protocol, the layer of WebSockets and the server of
HTTP get the same, all without a socket. A stranger that was cut comes again.

Whatever is not a refusal that the program foresaw is a failure, and so is an honest sample that
does not arrive, a bound that is passed, or anything that a stranger leaves behind: see
`tools/strangers`.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
import traceback
from collections.abc import Sequence
from typing import Protocol

from tools.strangers.devices import Devices
from tools.strangers.http import HttpRequests
from tools.strangers.nodes import scenes
from tools.strangers.websockets import WebSockets

#: What the process may grow by after so many seconds, in MiB.
WARM = 60.0
GROWTH = 128


class Scene(Protocol):
    """Somebody to speak to."""

    name: str
    #: Whom strangers speak to here: nodes of a role, a broker, WebSockets, HTTP.
    group: str
    messages: int

    def round(self) -> None:
        """One stranger's life."""


def by_group(made: Sequence[Scene]) -> dict[str, int]:
    """How many messages each group of scenes has had."""
    heard: dict[str, int] = {}
    for scene in made:
        heard[scene.group] = heard.get(scene.group, 0) + scene.messages
    return heard


def speak(made: Sequence[Scene], seconds: float, messages: int) -> str:
    """Let strangers come until time and messages of each group are spent; what failed, if any."""
    began = time.monotonic()
    grown = 0
    while True:
        now = time.monotonic()
        heard = by_group(made)
        if now >= began + seconds and min(heard.values()) >= messages:
            return ""
        behind = min(heard, key=lambda group: heard[group])
        scene = min((one for one in made if one.group == behind), key=lambda one: one.messages)
        try:
            scene.round()
        except Exception:
            traceback.print_exc()
            return f"{scene.name}, after {scene.messages} messages"
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        if not grown and now > began + WARM:
            grown = most
        if grown and most > grown + GROWTH:
            return f"memory: {grown} MiB became {most} MiB"


def main() -> int:
    """Fuzz as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz_sessions")
    parser.add_argument("--seconds", type=float, default=0, help="how long to search")
    parser.add_argument("--messages", type=int, default=0, help="how many messages each role hears")
    parser.add_argument("--seed", type=int, help="which messages (default: others each time)")
    parser.add_argument("--only", help="one group of these alone: router, peer, …, HTTP")
    asked = parser.parse_args()
    seed = random.randrange(1 << 32) if asked.seed is None else asked.seed
    print(f"seed {seed}", flush=True)
    chance = random.Random(seed)
    made: list[Scene] = [*scenes(chance), Devices(chance), WebSockets(chance), HttpRequests(chance)]
    if asked.only:
        made = [scene for scene in made if scene.group == asked.only]
        if not made:
            parser.error(f"there is no group '{asked.only}'")
    began = time.monotonic()
    seconds = asked.seconds if asked.seconds or asked.messages else 60
    failed = speak(made, seconds, asked.messages)
    spent = time.monotonic() - began
    for scene in made:
        print(f"{scene.name:30} {scene.messages:10} messages")
    for group, heard in by_group(made).items():
        print(f"all to {group:23} {heard:10} messages")
    total = sum(scene.messages for scene in made)
    print(f"{total} messages in {spent:.0f} s, {total / spent:.0f} a second")
    if failed:
        print(f"failed: {failed}, seed {seed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
