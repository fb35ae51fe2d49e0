"""Request by request what Eclipse's REST plugin answers, as a real one was recorded."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

from tests.rest.conftest import router, url_of
from tests.rest.eclipse import GOLDEN, answer, events
from tests.waiting import until

KNOWN = json.loads(GOLDEN.read_text("utf-8"))
#: Where ours answers otherwise, and means to.
OTHERWISE = {
    ("GET", "/demo/html", "text/html"): "a value that looks like HTML is shown, not run",
    ("GET", "/demo/text?_time=nonsense", None): "what cannot be read is an error, not ignored",
    (
        "OPTIONS",
        "/demo/text",
        "http://127.0.0.1",
    ): "pages of others may not ask unless the configuration says so",
    ("GET", "/@/*/router", None): "of itself a node says what it is",
    ("GET", "/@/local/router", None): "of itself a node says what it is",
    ("GET", "/@/local/router/status/plugins/rest/**", None): "of itself a node says what it is",
    ("GET", "/@/local/router/config/**", None): "the configuration can be read",
}


def alike(given: dict[str, Any]) -> dict[str, Any]:
    """What is compared of an answer: of errors not the words; and CORS is closed by default."""
    return {"status": given["status"]} | (
        {} if given["status"] >= 400 else {"type": given["type"], "body": given["body"]}
    )


def test_requests_are_answered_as_eclipse_answers_them() -> None:
    storages = {"demo": {"key_expr": "demo/**", "volume": "memory"}}
    plugins = {"rest": {"http_port": "127.0.0.1:0"}, "storage_manager": {"storages": storages}}
    compared = 0
    with router(json.dumps(plugins), timestamping__enabled="true") as bus:
        place = url_of(bus).removeprefix("http://")
        for known in KNOWN["requests"]:
            request, theirs = known["request"], alike(known["answer"])
            method, path, headers = request["method"], request["path"], request["headers"]
            plain, _, binary = request["body"].partition("base64:")
            raw = b64decode(binary) if binary else plain.encode()
            if (method, path, headers.get("accept") or headers.get("origin")) in OTHERWISE:
                continue
            asked = (method, path, headers, raw)
            compared += 1
            if method == "GET":  # a storage stores when it gets to it
                until(
                    lambda: alike(answer(place, asked)) == theirs,  # noqa: B023
                    f"{method} {path}: {alike(answer(place, asked))} instead of {theirs}",
                    20,
                )
            else:
                assert alike(answer(place, asked)) == theirs, (method, path)
        ours = [line for line in events(place) if not line.startswith("id: ")]
    assert ours == KNOWN["events"]
    assert compared == len(KNOWN["requests"]) - len(OTHERWISE)
