"""Sockets that say nothing fill a router's HTTP, and neither its bus nor its journal."""

from __future__ import annotations

import json
import resource
import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import zenoh

from tests.cli.programs import COMMAND, Program, endpoint
from tests.ports import free_port
from tests.waiting import SECONDS, until
from zenlake.http.limits import FIRST_BYTE_SECONDS
from zenlake.journal import Journal

pytestmark = [pytest.mark.slow, pytest.mark.interop, pytest.mark.once]

DESCRIPTORS = 1500
"""Those that the router's process may have."""
IDLE = 3000
LIMITED = (
    f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({DESCRIPTORS}, {DESCRIPTORS})); "
)


@contextmanager
def many_descriptors() -> Iterator[None]:
    """This process may have as many as the system lets it have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard >= IDLE + 500, f"the machine lets a process have {hard} descriptors alone"
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_idle_sockets_take_a_share_of_the_descriptors_and_leave_the_rest(tmp_path: Path) -> None:
    place, port = endpoint(), free_port()
    file = tmp_path / "router.json5"
    journal = {"name": "j", "dir": str(tmp_path / "j"), "key_exprs": ["idle/**"], "fsync": "5ms"}
    file.write_text(json.dumps({"journals": [journal]}))
    words = ["router", "-c", str(file), "-l", place, "--rest-http-port", str(port)]
    words.append("--no-multicast-scouting")
    with (
        many_descriptors(),
        Program("-c", LIMITED + COMMAND, *words) as router,
        ExitStack() as sockets,
    ):
        router.says("HTTP and the page")
        url = f"http://127.0.0.1:{port}/health"

        def answered() -> bool:
            try:
                with urllib.request.urlopen(url, timeout=SECONDS) as answer:
                    return bool(answer.read() == b"ok\n")
            except OSError:
                return False

        kept = []
        began = time.monotonic()
        for number in range(IDLE):
            one = sockets.enter_context(socket.create_connection(("127.0.0.1", port), SECONDS))
            if number % 2:
                one.send(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")  # a head without its end
            kept.append(one)
        answered()  # or refused, as all before it were then
        turns = 1 + int((time.monotonic() - began) / FIRST_BYTE_SECONDS)
        settings = zenoh.Config()
        settings.insert_json5("mode", '"client"')
        settings.insert_json5("scouting/multicast/enabled", "false")
        settings.insert_json5("connect/endpoints", json.dumps([place]))
        with zenoh.open(settings) as client:
            client.put("idle/a", "there is room")
            (reply,) = client.get("idle/a")
            assert reply.ok is not None
            assert reply.ok.payload.to_string() == "there is room"
            # Who monitors it is let in again as soon as the time of the idle ones is over.
            until(answered, "HTTP answers again")
            (reply,) = client.get("@/*/router/metrics?compression=false")
            assert reply.ok is not None
            refused = [
                line
                for line in reply.ok.payload.to_string().splitlines()
                if line.startswith("zenoh_http_connections_refused_total{")
            ]
            counted = {
                line.partition('reason="')[2].partition('"')[0]: float(line.rpartition(" ")[2])
                for line in refused
            }
            # An eighth of the descriptors is for HTTP, three quarters of that for one address; who
            # got a place keeps it for so many seconds.
            assert counted["address"] >= IDLE - DESCRIPTORS // 8 * turns
            assert counted["slow"] > 0
        assert router.interrupt() == 130
    values = [v for b in Journal.open(tmp_path / "j").scan() for v in b["value"].to_pylist()]
    assert values == [b"there is room"]
