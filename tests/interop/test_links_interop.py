"""Links of every kind between this stack and the real one, each in both roles."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path

import pytest
import zenoh

from tests.links.authority import DAY, Authority, Certificate
from tests.ports import free_port
from tests.waiting import SECONDS, until
from zenlake.config import Config
from zenlake.engine.runtime import Runtime
from zenlake.errors import LinkError
from zenlake.node.entities import SampleSink
from zenlake.node.sample import Sample

pytestmark = [
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore::zenlake.config.problem.ConfigWarning"),
]

PAYLOAD = bytes(range(256)) * 1000
Settings = dict[str, object]


class Heard(SampleSink):
    """Remembers what a subscriber heard."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []
        self.some = threading.Event()

    def push(self, sample: Sample) -> None:
        self.payloads.append(sample.payload.to_bytes())
        self.some.set()


def theirs(settings: Settings) -> zenoh.Session:
    config = zenoh.Config()
    for key, value in {"scouting/multicast/enabled": False, **settings}.items():
        config.insert_json5(key, json.dumps(value))
    return zenoh.open(config)


def ours(settings: Settings) -> Runtime:
    config = Config()
    for key, value in {"scouting/multicast/enabled": False, **settings}.items():
        config.insert_json5(key, json.dumps(value))
    return Runtime.open(config)


def _matches(publisher: zenoh.Publisher) -> bool:
    status: object = publisher.matching_status
    return bool(getattr(status, "matching", status))


def talk(session: zenoh.Session, runtime: Runtime) -> None:
    """Publish a large sample in each direction, and demand that it arrives."""
    got: list[bytes] = []
    arrived = threading.Event()

    def hear(sample: zenoh.Sample) -> None:
        got.append(sample.payload.to_bytes())
        arrived.set()

    heard = Heard()
    subscriber = session.declare_subscriber("from/us", hear)
    # Otherwise Eclipse drops a large sample that waits for a busy machine.
    publisher = session.declare_publisher(
        "from/them", congestion_control=zenoh.CongestionControl.BLOCK
    )
    with runtime.locked() as node:
        node.local.subscribe("from/them", heard)
        mine = node.local.publisher("from/us", 5, True, 4, b"", 1)
    until(lambda: mine.matching)
    until(lambda: _matches(publisher))
    mine.put(PAYLOAD)
    publisher.put(PAYLOAD)
    assert arrived.wait(SECONDS)
    assert heard.some.wait(SECONDS)
    assert got == [PAYLOAD]
    assert heard.payloads == [PAYLOAD]
    subscriber.undeclare()  # type: ignore[no-untyped-call]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def papers(
    authority: Authority,
    mtls: bool = False,
    server: Certificate | None = None,
    client: Certificate | None = None,
) -> Settings:
    tls = "transport/link/tls"
    shown = server or authority.sign("server")
    found: Settings = {
        f"{tls}/root_ca_certificate": str(authority.path),
        f"{tls}/listen_certificate": str(shown.certificate),
        f"{tls}/listen_private_key": str(shown.key),
        f"{tls}/enable_mtls": mtls,
    }
    if mtls:
        held = client or authority.sign("client", "client")
        found[f"{tls}/connect_certificate"] = str(held.certificate)
        found[f"{tls}/connect_private_key"] = str(held.key)
    return found


def place(protocol: str) -> str:
    kind = socket.SOCK_DGRAM if protocol == "quic" else socket.SOCK_STREAM
    return f"{protocol}/127.0.0.1:{free_port(kind)}"


@pytest.mark.parametrize(
    ("protocol", "mtls"),
    [("tls", False), ("tls", True), ("ws", False), ("quic", False), ("quic", True)],
)
def test_we_connect_to_them(authority: Authority, protocol: str, mtls: bool) -> None:
    where = place(protocol)
    said = papers(authority, mtls)
    with theirs({"mode": "router", "listen/endpoints": [where], **said}) as session:
        runtime = ours({"mode": "client", "connect/endpoints": [where], **said})
        try:
            talk(session, runtime)
            if protocol != "ws":
                (pump,) = runtime.pumps
                assert pump.link.auth_identifier == "node"
        finally:
            runtime.close()


@pytest.mark.parametrize(
    ("protocol", "mtls"), [("tls", False), ("tls", True), ("ws", False), ("quic", False)]
)
def test_they_connect_to_us(authority: Authority, protocol: str, mtls: bool) -> None:
    where = place(protocol)
    said = papers(authority, mtls)
    runtime = ours({"mode": "peer", "listen/endpoints": [where], **said})
    try:
        with theirs({"mode": "client", "connect/endpoints": [where], **said}) as session:
            talk(session, runtime)
            if mtls:
                (pump,) = runtime.pumps
                assert pump.link.auth_identifier == "client"
    finally:
        runtime.close()


def test_certificates_without_a_common_name_are_good_on_both_sides(authority: Authority) -> None:
    where = place("tls")
    said = papers(
        authority, True, authority.sign("server", name=None), authority.sign("client", name=None)
    )
    with theirs({"mode": "router", "listen/endpoints": [where], **said}) as session:
        runtime = ours({"mode": "client", "connect/endpoints": [where], **said})
        talk(session, runtime)
        runtime.close()


def refusal(where: str, said: Settings) -> str:
    with pytest.raises(LinkError) as refused:
        ours(
            {
                "mode": "client",
                "connect/endpoints": [where],
                "connect/timeout_ms": 0,
                "transport/unicast/open_timeout": round(1000 * SECONDS),
                **said,
            }
        )
    return str(refused.value)


@pytest.mark.parametrize("protocol", ["tls", "quic"])
@pytest.mark.parametrize(
    ("flaw", "words"),
    [
        ("stranger", "unable to get local issuer certificate"),
        ("expired", "expired|no longer valid"),
        ("elsewhere", "127.0.0.1"),
    ],
)
def test_we_refuse_their_bad_certificate_with_clear_words(
    tmp_path: Path, authority: Authority, protocol: str, flaw: str, words: str
) -> None:
    signer = Authority(tmp_path, "stranger") if flaw == "stranger" else authority
    hosts = ("elsewhere.example",) if flaw == "elsewhere" else ("127.0.0.1",)
    bad = signer.sign("bad", hosts=hosts, until=-DAY if flaw == "expired" else DAY)
    where = place(protocol)
    listening = {"mode": "router", "listen/endpoints": [where]}
    with theirs({**listening, **papers(authority, server=bad)}) as session:
        said = refusal(where, papers(authority))
        assert any(word in said for word in words.split("|")), said
        assert list(session.info.peers_zid()) == list(session.info.routers_zid()) == []


@pytest.mark.parametrize("flaw", ["none", "stranger", "expired"])
def test_they_refuse_our_bad_certificate_and_we_say_so(
    tmp_path: Path, authority: Authority, flaw: str
) -> None:
    signer = Authority(tmp_path, "stranger") if flaw == "stranger" else authority
    mine = signer.sign("mine", until=-DAY if flaw == "expired" else DAY)
    where = place("tls")
    listening = {"mode": "router", "listen/endpoints": [where]}
    with theirs({**listening, **papers(authority, mtls=True)}) as session:
        said = refusal(where, papers(authority, mtls=flaw != "none", client=mine))
        words = {"none": "certificate required", "stranger": "ca", "expired": "expired"}[flaw]
        assert "it refused us" in said
        assert words in said
        assert list(session.info.peers_zid()) == []


@pytest.mark.parametrize("flaw", ["none", "stranger", "expired"])
def test_we_refuse_who_connects_without_a_good_certificate(
    tmp_path: Path, authority: Authority, flaw: str, caplog: pytest.LogCaptureFixture
) -> None:
    signer = Authority(tmp_path, "stranger") if flaw == "stranger" else authority
    bad = signer.sign("bad", until=-DAY if flaw == "expired" else DAY)
    where = place("tls")
    runtime = ours({"mode": "peer", "listen/endpoints": [where], **papers(authority, mtls=True)})
    try:
        with pytest.raises(zenoh.ZError):
            theirs(
                {
                    "mode": "client",
                    "connect/endpoints": [where],
                    **papers(authority, mtls=flaw != "none", client=bad),
                }
            )
        words = {
            "none": "it showed no certificate, which enable_mtls demands",
            "stranger": "its certificate is not accepted: unable to get local issuer certificate",
            "expired": "its certificate is not accepted: certificate has expired",
        }[flaw]
        until(lambda: words in caplog.text)
        assert runtime.neighbours() == []
    finally:
        runtime.close()
