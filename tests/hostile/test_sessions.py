"""A stranger in an open session may say anything: what `make fuzz` does for long, for a moment."""

from __future__ import annotations

import random
from contextlib import closing

import pytest

from tools.strangers.devices import Devices
from tools.strangers.http import HttpRequests
from tools.strangers.nodes import ROLES, Nodes
from tools.strangers.websockets import WebSockets

#: Frames of a stranger's life here.
FEW = 40


@pytest.mark.parametrize("mode", ROLES)
@pytest.mark.parametrize("role", ROLES)
def test_a_stranger_of_any_role_leaves_nothing_behind(mode: str, role: str) -> None:
    scene = Nodes(mode, role, random.Random(7), ruled=mode == role)
    scene.life = FEW
    for _ in range(3):
        scene.round()
    assert scene.messages > FEW


def test_a_device_of_2018_leaves_nothing_behind() -> None:
    scene = Devices(random.Random(7))
    scene.life = FEW
    for _ in range(4):
        scene.round()
    assert scene.messages > FEW


def test_a_stranger_behind_a_web_socket_leaves_nothing_behind() -> None:
    with closing(WebSockets(random.Random(7))) as scene:
        scene.life = FEW
        for _ in range(3):
            scene.round()
        assert scene.messages > FEW


def test_strangers_over_http_leave_nothing_behind_and_others_are_answered() -> None:
    with closing(HttpRequests(random.Random(7))) as scene:
        for _ in range(4):
            scene.round()
        assert scene.messages > FEW
