"""HTTP on a real router: what Eclipse's plugin does, and what it lacks."""

from __future__ import annotations

import io
import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pyarrow.parquet as pq
import pytest

import zenlake
from tests.api.sessions import connected
from tests.journal.recording import until_rows
from tests.ports import free_port
from tests.rest.conftest import plugins, router, url_of
from tests.waiting import SECONDS, until
from zenlake.errors import ConfigError, LocalError
from zenlake.journal.options import Options
from zenlake.journal.recorder import Recorder
from zenlake.keys import Parameters
from zenlake.keys.readable import ReadableKeys
from zenlake.node.inspection.metrics import HTTP_SKIPPED
from zenlake.rest import RestService


def put(web: httpx.Client, path: str, body: str, kind: str = "text/plain", **more: str) -> None:
    # Acknowledged: a storage stores on a thread of its own.
    headers = {"content-type": kind}
    answer = web.put(path, content=body, headers=headers, params={"_ack_put": ""} | more)
    assert answer.status_code == 200, answer.text


def test_a_value_is_put_asked_for_and_deleted(web: httpx.Client) -> None:
    put(web, "/demo/a", '{"n":1}', "application/json")
    (found,) = web.get("/demo/a").json()
    assert found["key"] == "demo/a"
    assert found["value"] == {"n": 1}
    assert found["encoding"] == "application/json"
    assert str(zenlake.Timestamp.parse(found["timestamp"])) == found["timestamp"]
    raw = web.get("/demo/a?_raw")
    assert (raw.text, raw.headers["content-type"]) == ('{"n":1}', "application/json")
    assert "<dd>{&quot;n&quot;:1}</dd>" in web.get("/demo/a", headers={"accept": "text/html"}).text
    assert web.patch("/demo/a", content=b"\xff\xfe").status_code == 200
    until(lambda: web.get("/demo/*").json()[0]["value"] == "//4=")
    assert web.delete("/demo/a").status_code == 200
    until(lambda: web.get("/demo/a").json() == [])


def test_an_encoding_is_shown_and_put_as_it_is(web: httpx.Client, bus: zenlake.Session) -> None:
    with bus.declare_queryable("newer", lambda query: query.reply(
        "newer", "x", encoding=zenlake.Encoding.from_wire(4000, b"v2")
    )):  # fmt: skip
        (shown,) = web.get("/newer").json()
    assert shown["encoding"] == "unknown(4000);v2"
    with bus.declare_subscriber("copy") as heard:
        answer = web.put("/copy", content="x", headers={"content-type": shown["encoding"]})
        assert answer.status_code == 200
        encoding = heard.recv().encoding
    assert (encoding.id, encoding.schema) == (4000, b"v2")


def test_curl_lines_of_zenohs_documentation_work(bus: zenlake.Session) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.fail("curl is missing: apt-get install curl")

    def run(*arguments: str) -> str:
        return subprocess.run(
            [curl, "-sS", "--max-time", "20", "--noproxy", "*", *arguments],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip

    url = url_of(bus)
    assert run("-X", "PUT", "-d", "Hello World!", f"{url}/demo/example/test") == ""
    until(lambda: run(f"{url}/demo/example/test") != "[]")
    (found,) = json.loads(run(f"{url}/demo/example/test"))
    assert found["encoding"] == "application/x-www-form-urlencoded"
    run("-X", "PUT", "-H", "content-type:text/plain", "-d", "Hello World!", f"{url}/demo/example/t")
    until(lambda: "Hello World!" in run(f"{url}/demo/example/t"))
    zids = [one["value"]["zid"] for one in json.loads(run(f"{url}/@/*/router"))]
    assert zids == [str(bus.zid())]
    assert json.loads(run(f"{url}/@/local/router"))[0]["value"]["zid"] == str(bus.zid())
    run("-X", "DELETE", f"{url}/demo/example/test")
    until(lambda: json.loads(run(f"{url}/demo/example/test")) == [])


def test_a_query_carries_its_parameters_and_its_payload(
    bus: zenlake.Session, web: httpx.Client
) -> None:
    def answer(query: zenlake.Query) -> None:
        payload = query.payload
        query.reply(
            "ask/this",
            f"{query.selector}|{'' if payload is None else payload.to_string()}|{query.encoding}",
            encoding="text/plain",
        )
        query.reply_err("no more", encoding="text/plain")

    with bus.declare_queryable("ask/**", answer):
        found = {one["key"]: one["value"] for one in web.get("/ask/this?a=1;b=[2..]").json()}
        assert found == {"ask/this": "ask/this?a=1;b=[2..]||None", "ERROR": "no more"}
        asked = web.post("/ask/this", content="body", headers={"content-type": "text/plain"})
        assert {"ask/this|body|text/plain"} < {one["value"] for one in asked.json()}


def test_time_is_asked_for_and_downloaded_as_tables(web: httpx.Client) -> None:
    for number in range(3):
        put(web, "/past/n", str(number), "application/json")
    rows = web.get("/past/n?_time=[now(-1h)..]").json()
    assert sorted(row["value"] for row in rows) == [0, 1, 2]
    text = web.get("/past/n?_time=[now(-1h)..];_download=csv")
    assert text.headers["content-disposition"] == 'attachment; filename="answer.csv"'
    assert len(text.text.splitlines()) == 4
    kind = "application/vnd.apache.parquet"
    table = web.get("/past/n?_time=[now(-1h)..]", headers={"accept": kind})
    assert table.headers["content-type"] == kind
    assert sorted(pq.read_table(io.BytesIO(table.content))["value"].to_pylist()) == ["0", "1", "2"]


def test_a_put_is_acknowledged_by_a_storage_or_said_not_to_be(web: httpx.Client) -> None:
    assert web.put("/demo/b?_ack_put=true", content="x").json()["timestamp"]
    refused = web.put("/nowhere?_ack_put", content="x")
    assert refused.status_code == 503
    assert "no storage answered" in refused.text


def events(lines: Iterator[str], many: int) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    current: dict[str, str] = {}
    for line in lines:
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            current[name] = value
        elif current:
            found.append(current)
            current = {}
            if len(found) == many:
                break
    return found


EVENTS = {"accept": "text/event-stream"}


def test_events_come_as_they_are_published_and_go_on_after_the_last(
    bus: zenlake.Session, web: httpx.Client
) -> None:
    with web.stream("GET", "/past/**", headers=EVENTS) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.iter_lines()
        assert next(lines) == ": zenlake"
        put(web, "/past/e", "1", "application/json")
        put(web, "/past/e", "2", "application/json")
        bus.delete("past/e")
        first, second, third = events(lines, 3)
    assert [one["event"] for one in (first, second, third)] == ["PUT", "PUT", "DELETE"]
    assert json.loads(second["data"])["value"] == 2
    until(lambda: web.get("/status").json()["services"]["status/plugins/rest/streams"]["open"] == 0)
    put(web, "/past/e", "3", "application/json")
    resumed = {**EVENTS, "last-event-id": first["id"]}
    with web.stream("GET", "/past/e", headers=resumed) as stream:
        lines = stream.iter_lines()
        missed = events(lines, 3)
        put(web, "/past/e", "4", "application/json")
        (live,) = events(lines, 1)
    assert [json.loads(one["data"])["value"] for one in [*missed, live]] == [
        2,
        None,
        3,
        4,
    ]
    assert [one["id"] for one in missed[:2]] == [second["id"], third["id"]]


@contextmanager
def recorded(folder: Path) -> Iterator[tuple[httpx.Client, Recorder]]:
    """A router over HTTP that records `rec/**` into a folder."""
    options = Options(("rec/**",), str(folder), name="j", fsync="5ms")
    with (
        router(plugins()) as bus,
        Recorder(bus, options) as recorder,
        httpx.Client(base_url=url_of(bus), timeout=SECONDS, trust_env=False) as web,
    ):
        yield web, recorder


def test_events_go_on_after_the_last_by_the_journal_of_a_router_that_was_restarted(
    tmp_path: Path,
) -> None:
    def say(web: httpx.Client, value: int) -> None:
        assert web.put("/rec/a", json={"n": value}).status_code == 200

    with recorded(tmp_path) as (web, recorder):
        with web.stream("GET", "/rec/**", headers=EVENTS) as stream:
            lines = stream.iter_lines()
            assert next(lines) == ": zenlake"
            say(web, 1)
            (last,) = events(lines, 1)
        say(web, 2)
        assert web.delete("/rec/a").status_code == 200
        until_rows(recorder, 3)
    with recorded(tmp_path) as (web, recorder):
        say(web, 3)
        until_rows(recorder, 4)
        resumed = {**EVENTS, "last-event-id": last["id"]}
        with web.stream("GET", "/rec/**", headers=resumed) as stream:
            lines = stream.iter_lines()
            missed = events(lines, 3)
            say(web, 4)
            (live,) = events(lines, 1)
    got = [*missed, live]
    assert [one["event"] for one in got] == ["PUT", "DELETE", "PUT", "PUT"]
    assert [json.loads(one["data"])["value"] for one in got] == [
        {"n": 2},
        None,
        {"n": 3},
        {"n": 4},
    ]
    assert last["id"] not in [one["id"] for one in got]


def test_a_reader_of_events_that_is_slow_is_told_what_it_missed() -> None:
    with (
        router(plugins(stream_queue=4)) as bus,
        httpx.Client(base_url=url_of(bus), timeout=SECONDS, trust_env=False) as web,
        web.stream("GET", "/big/**", headers=EVENTS) as stream,
    ):
        lines = stream.iter_lines()
        assert next(lines) == ": zenlake"

        def skipped() -> int:
            service = bus.runtime.services["zenlake.rest"]
            return sum(int(many) for metric, _, many in service.metrics() if metric is HTTP_SKIPPED)

        def published() -> bool:
            for _ in range(100):
                bus.put("big/a", bytes(200_000))
            return skipped() > 0

        until(published, "no sample was skipped")
        told = next(line for line in lines if line == "event: SKIPPED")
        assert told
        assert json.loads(next(lines).removeprefix("data: "))["skipped"] > 0


def test_a_question_that_nobody_answers_ends_with_its_time() -> None:
    hold: list[zenlake.Query] = []
    with (
        router(plugins(timeout=0.2)) as bus,
        bus.declare_queryable("slow", hold.append),
        httpx.Client(base_url=url_of(bus), timeout=SECONDS, trust_env=False) as web,
    ):
        assert web.get("/slow").json()[0]["key"] == "ERROR"
        hold.clear()


def test_limits_are_kept_and_told() -> None:
    limits = {"max_body": 10, "max_rows": 2, "max_answer": 10, "max_streams": 1, "max_requests": 1}
    with (
        router(plugins(**limits, timeout=SECONDS)) as bus,
        httpx.Client(base_url=url_of(bus), timeout=SECONDS, trust_env=False) as web,
    ):
        assert web.put("/demo/a", content=b"x" * 11).status_code == 413
        chunks = iter([b"x" * 6, b"x" * 6])
        assert web.put("/demo/a", content=chunks).status_code == 413
        for name in "abc":
            web.put(f"/demo/{name}?_ack_put", content=b"x")
        answer = web.get("/demo/*")
        assert len(answer.json()) == 2
        assert "max_rows is 2" in answer.headers["zenlake-truncated"]
        for name in "ab":
            web.put(f"/demo/long/{name}?_ack_put", content=b"x" * 6)
        answer = web.get("/demo/long/*")
        assert len(answer.json()) == 1
        assert "max_answer is 10" in answer.headers["zenlake-truncated"]
        with web.stream("GET", "/x", headers=EVENTS) as stream:
            lines = stream.iter_lines()
            assert next(lines) == ": zenlake"
            refused = web.get("/x", headers=EVENTS)
            assert refused.status_code == 503
            assert refused.headers["retry-after"] == "1"
        hold: list[zenlake.Query] = []
        with bus.declare_queryable("slow", hold.append):
            answers: list[httpx.Response] = []
            slow = threading.Thread(target=lambda: answers.append(web.get("/slow")))
            slow.start()
            until(lambda: bool(hold))
            refused = web.get("/demo/a")
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert "requests are being answered" in refused.text
            hold.clear()
            slow.join()
            assert answers[0].status_code == 200


def test_a_question_ends_when_who_asked_has_gone(bus: zenlake.Session, web: httpx.Client) -> None:
    hold: list[zenlake.Query] = []
    place = url_of(bus).removeprefix("http://")
    host, _, port = place.rpartition(":")
    with bus.declare_queryable("gone/**", hold.append):
        with socket.create_connection((host, int(port)), timeout=SECONDS) as client:
            client.sendall(f"GET /gone/a HTTP/1.1\r\nhost: {place}\r\n\r\n".encode())
            until(lambda: bool(hold))
        until(lambda: 'method="GET",code="499"}' in web.get("/metrics").text)
        assert not bus.runtime.node.local.gets
        hold.clear()


def test_pages_of_the_node_are_there(bus: zenlake.Session, web: httpx.Client) -> None:
    assert web.get("/health").text == "ok\n"
    assert web.get("/ready").text == "ready\n"
    assert web.get("/status").json()["zid"] == str(bus.zid())
    metrics = web.get("/metrics")
    assert metrics.headers["content-type"].startswith("application/openmetrics-text")
    assert 'method="GET",code="200"}' in metrics.text
    assert "zenoh_http_requests_total{" in metrics.text
    assert metrics.text.endswith("# EOF\n")
    packed = web.get("/@/local/router/metrics?_raw")
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.text.endswith("# EOF\n")
    assert web.get("/openapi.json").json()["openapi"] == "3.1.0"
    page = web.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "connect-src 'self'" in page.headers["content-security-policy"]
    assert web.get("/@web/%2e%2e/rest/service.py").status_code == 404
    assert web.post("/health").json() == []


def test_what_is_published_never_runs_in_the_page_of_a_browser(web: httpx.Client) -> None:
    put(web, "/demo/page", "<script>alert(1)</script>", "text/html")
    headers = web.get("/demo/page?_raw").headers
    assert headers["content-type"].startswith("text/html")
    assert "sandbox" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"host": "evil.example"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 403),
        ({"sec-fetch-site": "same-origin"}, 200),
    ],
)
def test_pages_of_other_sites_and_names_of_others_are_refused(
    web: httpx.Client, headers: dict[str, str], code: int
) -> None:
    assert web.get("/demo/**", headers=headers).status_code == code
    if code == 403:
        assert web.put("/demo/x", content="x", headers=headers).status_code == 403


def test_an_origin_that_is_configured_may_ask(bus: zenlake.Session) -> None:
    origin = {"origin": "https://a.example"}
    with (
        router(plugins(cors_origins=["https://a.example"])) as other,
        httpx.Client(base_url=url_of(other), timeout=SECONDS, trust_env=False) as web,
    ):
        answer = web.get("/demo/**", headers=origin)
        assert answer.headers["access-control-allow-origin"] == "https://a.example"
        wish = {**origin, "access-control-request-method": "PUT"}
        before = web.options("/demo/a", headers=wish)
        assert "PUT" in before.headers["access-control-allow-methods"]
        assert before.headers["access-control-allow-origin"] == "https://a.example"
        assert web.get("/demo/**", headers={"origin": "https://b.example"}).status_code == 403


def test_strangers_are_asked_who_they_are(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    users, tokens = tmp_path / "users", tmp_path / "tokens"
    users.write_text("ada:secret\nbob:other\n")
    users.chmod(0o600)
    token = "0123456789abcdef"
    tokens.write_text(f"# tokens\nada:{token}\n")
    tokens.chmod(0o600)
    rules = {
        "enabled": True,
        "default_permission": "deny",
        "rules": [
            {
                "id": "r", "key_exprs": ["demo/**"], "permission": "allow",
                "messages": ["put", "delete", "query", "reply", "declare_subscriber"],
            },
            {
                "id": "safe", "key_exprs": ["demo/safe/**"], "permission": "deny",
                "messages": ["put", "delete"],
            },
        ],
        "subjects": [{"id": "s", "usernames": ["ada"]}],
        "policies": [{"rules": ["r", "safe"], "subjects": ["s"]}],
    }  # fmt: skip
    keys = {
        "transport__auth__usrpwd__dictionary_file": json.dumps(str(users)),
        "access_control": json.dumps(rules),
    }
    caplog.set_level("DEBUG")
    with (
        router(plugins(tokens_file=str(tokens), http_port="0.0.0.0:0"), **keys) as bus,
        httpx.Client(base_url=url_of(bus), timeout=SECONDS, trust_env=False) as web,
    ):
        unknown = web.get("/demo/a")
        assert unknown.status_code == 401
        assert "Bearer" in unknown.headers["www-authenticate"]
        assert web.get(f"/demo/a?token={token}").status_code == 401
        assert web.get("/metrics").status_code == 401
        assert web.get("/health").status_code == 200
        ada = {"authorization": f"Bearer {token}"}
        assert web.put("/demo/a?_ack_put", content="x", headers=ada).status_code == 200
        assert len(web.get("/demo/a", auth=("ada", "secret")).json()) == 1
        assert web.get("/demo/a", auth=("ada", "wrong")).status_code == 401
        assert web.get("/demo/a", headers={"authorization": "Basic %%%"}).status_code == 401
        # Who answers about many keys at once is told which of them the user may read.
        text = zenlake.Encoding.TEXT_PLAIN
        with bus.declare_queryable(
            "demo/b", lambda q: q.reply("demo/b", str(q.parameters), encoding=text)
        ):
            rows = web.get("/demo/b?_agg=count(*)", headers=ada).json()
        (said,) = [row["value"] for row in rows if row["key"] == "demo/b"]
        readable = ReadableKeys.in_parameters(Parameters(said))
        assert readable.lets("demo/x")
        assert not readable.lets("other/x")
        denied = web.get("/demo/a", auth=("bob", "other"))
        assert denied.status_code == 403
        assert "by default it is denied" in denied.text
        assert web.put("/other", content="x", headers=ada).status_code == 403
        # A write of many keys is one of each of them, and so is a question that puts something.
        assert web.delete("/demo/old/**", headers=ada).status_code == 200
        whole = web.delete("/demo/**", headers=ada)
        assert whole.status_code == 403
        assert "denies keys of demo/safe/**" in whole.text
        assert web.put("/demo/*/x", content="x", headers=ada).status_code == 403
        asked = web.post("/demo/safe/x?_ack_put=true", content="x", headers=ada)
        assert asked.status_code == 403
        assert web.post("/demo/a?_ack_put=true", content="x", headers=ada).status_code == 200
        assert web.get("/other", headers={**ada, **EVENTS}).status_code == 403
        for guess in range(8):
            last = web.get("/demo/a", auth=("ada", f"guess {guess}"))
        assert last.status_code == 429
        assert "too many logins failed" in last.text
        # Not even the right word helps who guesses, until the time is over.
        assert web.get("/demo/a", auth=("ada", "secret")).status_code == 429
        with bus.runtime.locked() as node:
            events = {(event.kind, event.user, event.key) for event in node.incidents.newest()}
            reasons = " ".join(event.reason for event in node.incidents.newest())
        assert ("denied", "bob", "demo/a") in events
        assert "user 'ada'" in reasons
    said = [str(one.getMessage()) for one in caplog.records if one.name[:3] in ("zen", "uvi")]
    assert said
    assert not any(token in line or "secret" in line for line in said)


def test_an_open_address_without_users_is_refused() -> None:
    with pytest.raises(LocalError, match="there are no users"):
        router(plugins(http_port="0.0.0.0:0", __required__=True))
    with router(plugins(http_port="0.0.0.0:0")) as bus:
        service = bus.runtime.services["zenlake.rest"]
        ((key, why),) = [one for one in service.documents("@", "@/status/plugins/rest/failure")]
        assert key.endswith("failure")
        assert "allow_anonymous" in str(why)
    with router(plugins(http_port="0.0.0.0:0", allow_anonymous=True)) as bus:
        health = httpx.get(f"{url_of(bus)}/health", timeout=SECONDS, trust_env=False)
        assert health.status_code == 200


def test_tokens_that_are_short_or_open_to_everybody_are_refused(tmp_path: Path) -> None:
    from zenlake.http.users import read_tokens

    file = tmp_path / "tokens"
    file.write_text("ada:short")
    file.chmod(0o644)
    with pytest.raises(ConfigError, match=r"everybody on this machine can read .*chmod 600"):
        read_tokens(str(file))
    file.chmod(0o600)
    with pytest.raises(ConfigError, match="tokens:1: write user:token"):
        read_tokens(str(file))
    with pytest.raises(ConfigError, match="nothing-here"):
        read_tokens(str(tmp_path / "nothing-here"))


def test_a_port_that_is_taken_does_not_stop_the_bus(bus: zenlake.Session) -> None:
    taken = url_of(bus).removeprefix("http://")
    with router(plugins(http_port=taken)) as other:
        assert not other.runtime.services["zenlake.rest"].url  # type: ignore[attr-defined]
        assert not other.is_closed()


def test_another_port_is_obeyed_while_it_runs() -> None:
    with router(plugins(), adminspace__permissions__write="true") as bus:
        before = url_of(bus)
        port = free_port()
        bus.put(f"@/{bus.zid()}/router/config/plugins/rest/http_port", json.dumps(port))
        service = bus.runtime.services["zenlake.rest"]
        assert isinstance(service, RestService)
        until(lambda: service.url not in ("", before))  # between the two it is nowhere
        place = f"http://127.0.0.1:{port}"
        health = httpx.get(f"{place}/health", timeout=SECONDS, trust_env=False)
        assert health.status_code == 200


def test_it_ends_with_streams_open() -> None:
    with router(plugins()) as bus, httpx.Client(base_url=url_of(bus), trust_env=False) as web:
        ended = threading.Event()

        def read() -> None:
            try:
                with web.stream("GET", "/demo/**", headers=EVENTS, timeout=SECONDS) as stream:
                    for _ in stream.iter_lines():
                        started.set()
            except httpx.HTTPError:
                pass
            ended.set()

        started = threading.Event()
        threading.Thread(target=read).start()
        assert started.wait(SECONDS)
        bus.close()
        assert ended.wait(SECONDS)


def test_a_value_of_another_node_is_seen(bus: zenlake.Session, web: httpx.Client) -> None:
    with (
        connected(bus, mode='"client"') as client,
        client.declare_queryable("far/**", lambda query: query.reply("far/a", "x")),
    ):
        until(lambda: len(web.get("/far/a").json()) == 1)
