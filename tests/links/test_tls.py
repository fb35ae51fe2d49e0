from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import socket
import ssl
import time
from pathlib import Path

import pytest

from tests.links.authority import DAY, Authority, Certificate
from tests.links.conftest import Run
from tests.links.watching import PATIENCE, Visitors, Watched
from tests.waiting import holding
from zenlake.config.model_transport import LinkSettings, Tls
from zenlake.errors import ConfigError, LinkError, LocatorError
from zenlake.links import LinkListener, UnicastLink, check, connect, listen
from zenlake.links.options import shown
from zenlake.values.locator import EndPoint


class Hall:
    """A place to listen at, and one link to it."""

    def __init__(self, server: Tls, client: Tls, host: str = "127.0.0.1") -> None:
        self.visitors = Visitors()
        self._server = LinkSettings(tls=server)
        self._client = LinkSettings(tls=client)
        self._host = host

    async def open(self, options: str = "") -> LinkListener:
        endpoint = EndPoint.parse(f"tls/{self._host}:0{options}")
        loop = asyncio.get_running_loop()
        self.visitors.listening = await listen(endpoint, loop, self.visitors._on_link, self._server)
        return self.visitors.listening

    async def enter(self, options: str = "", host: str = "") -> Watched:
        place = self.visitors.listening.locators()[0]
        if host:
            place = f"tls/{host}:{place.rpartition(':')[2]}"
        endpoint = EndPoint.parse(place + options)
        loop = asyncio.get_running_loop()
        return Watched(await connect(endpoint, loop, PATIENCE, self._client))

    async def refusal(self, options: str = "", host: str = "") -> str:
        """Why nobody gets in, as the side that connects sees it at once."""
        with pytest.raises(LinkError) as refused:
            await self.enter(options, host)
        return str(refused.value)

    def close(self) -> None:
        self.visitors.close()


def server(paper: Certificate, authority: Authority | None = None, mtls: bool = False) -> Tls:
    return Tls(
        listen_certificate=str(paper.certificate),
        listen_private_key=str(paper.key),
        root_ca_certificate=str(authority.path) if authority else None,
        enable_mtls=mtls,
    )


def client(authority: Authority, paper: Certificate | None = None) -> Tls:
    return Tls(
        root_ca_certificate=str(authority.path),
        connect_certificate=str(paper.certificate) if paper else None,
        connect_private_key=str(paper.key) if paper else None,
        enable_mtls=paper is not None,
    )


async def refusal_of(caplog: pytest.LogCaptureFixture) -> str:
    """What the side that was connected to says of it."""
    await holding(lambda: caplog.messages, seconds=PATIENCE)
    return caplog.messages[0]


@pytest.fixture(autouse=True)
def _hear(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "zenlake.links")


# ------------------------------------------------------------------------------ who is believed


def test_a_certificate_of_a_stranger_is_refused_on_both_sides(
    run: Run, tmp_path: Path, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = Authority(tmp_path, "stranger")

    async def scene() -> None:
        hall = Hall(server(stranger.sign("server")), client(authority))
        await hall.open()
        said = await hall.refusal()
        assert "its certificate is not accepted: unable to get local issuer" in said
        assert "it refused us: unknown ca" in await refusal_of(caplog)
        assert hall.visitors.came == []
        hall.close()

    run(scene())


def test_an_expired_certificate_is_refused_on_both_sides(
    run: Run, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        hall = Hall(server(authority.sign("server", until=-DAY)), client(authority))
        await hall.open()
        assert "its certificate is not accepted: certificate has expired" in await hall.refusal()
        assert "it refused us: certificate expired" in await refusal_of(caplog)
        hall.close()

    run(scene())


def test_a_certificate_for_another_name_is_refused_unless_told_not_to_look(
    run: Run, authority: Authority
) -> None:
    paper = authority.sign("server", hosts=("elsewhere.example",))

    async def scene() -> None:
        hall = Hall(server(paper), client(authority))
        await hall.open()
        assert "certificate is not valid for '127.0.0.1'" in await hall.refusal()
        here = await hall.enter("#verify_name_on_connect=false")
        assert here.link.auth_identifier == "node"
        here.link.close()
        hall.close()

    run(scene())


def test_not_looking_at_names_is_not_believing_anybody(
    run: Run, tmp_path: Path, authority: Authority
) -> None:
    stranger = Authority(tmp_path, "stranger")

    async def scene() -> None:
        hall = Hall(server(stranger.sign("server")), client(authority))
        await hall.open()
        assert "not accepted" in await hall.refusal("#verify_name_on_connect=false")
        hall.close()

    run(scene())


def test_a_certificate_without_a_common_name_is_as_good(run: Run, authority: Authority) -> None:
    paper = authority.sign("server", name=None)

    async def scene() -> None:
        hall = Hall(server(paper), client(authority))
        await hall.open()
        here = await hall.enter()
        assert here.link.auth_identifier is None
        here.link.close()
        hall.close()

    run(scene())


def test_a_common_name_alone_does_not_name_a_host(run: Run, authority: Authority) -> None:
    paper = authority.sign("server", name="127.0.0.1", hosts=())

    async def scene() -> None:
        hall = Hall(server(paper), client(authority))
        await hall.open()
        assert "not accepted" in await hall.refusal()
        hall.close()

    run(scene())


def test_a_name_is_told_to_others_by_name(run: Run, authority: Authority) -> None:
    async def scene() -> None:
        paper = authority.sign("server", hosts=("localhost",))
        hall = Hall(server(paper), client(authority), host="localhost")
        listening = await hall.open()
        (place,) = set(listening.locators())
        assert place.startswith("tls/localhost:")
        here = await hall.enter()
        here.link.close()
        hall.close()

    run(scene())


def test_without_authorities_of_ones_own_those_of_the_system_count(
    run: Run, authority: Authority
) -> None:
    async def scene() -> None:
        hall = Hall(server(authority.sign("server")), Tls())
        await hall.open()
        assert "not accepted" in await hall.refusal()
        hall.close()

    run(scene())


# ------------------------------------------------------------------------------------- mTLS


def test_with_mtls_both_sides_know_each_other_by_name(run: Run, authority: Authority) -> None:
    async def scene() -> None:
        hall = Hall(
            server(authority.sign("server", "house"), authority, mtls=True),
            client(authority, authority.sign("client", "guest")),
        )
        await hall.open()
        here = await hall.enter()
        await hall.visitors.until(1)
        there = hall.visitors.came[0]
        assert (here.link.auth_identifier, there.link.auth_identifier) == ("house", "guest")
        here.link.close()
        hall.close()

    run(scene())


def test_with_mtls_who_shows_nothing_stays_outside(
    run: Run, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        hall = Hall(server(authority.sign("server"), authority, mtls=True), client(authority))
        await hall.open()
        here = await hall.enter()  # the other side looks at certificates last
        here.link.send(b"let me in")
        await here.until(lambda: bool(here.lost))
        assert "it refused us: certificate required" in str(here.lost[0])
        assert "it showed no certificate, which enable_mtls demands" in await refusal_of(caplog)
        assert hall.visitors.came == []
        here.link.close()
        hall.close()

    run(scene())


@pytest.mark.parametrize(
    ("flaw", "theirs", "ours"),
    [
        ("stranger", "unknown ca", "unable to get local issuer certificate"),
        ("expired", "certificate expired", "certificate has expired"),
    ],
)
def test_with_mtls_a_bad_certificate_is_refused_on_both_sides(
    run: Run,
    tmp_path: Path,
    authority: Authority,
    caplog: pytest.LogCaptureFixture,
    flaw: str,
    theirs: str,
    ours: str,
) -> None:
    signer = Authority(tmp_path, "stranger") if flaw == "stranger" else authority
    paper = signer.sign("client", until=-DAY if flaw == "expired" else DAY)

    async def scene() -> None:
        hall = Hall(
            server(authority.sign("server"), authority, mtls=True), client(authority, paper)
        )
        await hall.open()
        here = await hall.enter()
        await here.until(lambda: bool(here.lost))
        assert f"it refused us: {theirs}" in str(here.lost[0])
        assert ours in await refusal_of(caplog)
        assert hall.visitors.came == []
        here.link.close()
        hall.close()

    run(scene())


def test_mtls_without_an_authority_is_refused_before_anybody_comes(
    run: Run, authority: Authority
) -> None:
    async def scene() -> None:
        hall = Hall(server(authority.sign("server"), None, mtls=True), Tls())
        with pytest.raises(ConfigError, match=r"enable_mtls needs .*root_ca_certificate"):
            await hall.open()

    run(scene())


# ------------------------------------------------------------------------- where they come from


def test_certificates_may_be_in_the_configuration_itself(run: Run, authority: Authority) -> None:
    paper = authority.sign("server")
    trusted = Certificate(authority.path, authority.path).certificate_base64

    async def scene() -> None:
        hall = Hall(
            Tls(
                listen_certificate_base64=paper.certificate_base64,
                listen_private_key_base64=paper.key_base64,
            ),
            Tls(root_ca_certificate_base64=trusted),
        )
        await hall.open()
        here = await hall.enter()
        here.link.close()
        hall.close()

    run(scene())


def test_an_endpoint_counts_more_than_the_configuration(run: Run, authority: Authority) -> None:
    paper = authority.sign("server")
    trusted = Certificate(authority.path, authority.path).certificate_base64
    options = (
        f"#listen_certificate_base64={paper.certificate_base64}"
        f";listen_private_key_raw={paper.key.read_text()}"
    )

    async def scene() -> None:
        hall = Hall(Tls(listen_certificate="nowhere", listen_private_key="nowhere"), Tls())
        await hall.open(options)
        here = await hall.enter(f"#root_ca_certificate_base64={trusted}")
        here.link.close()
        hall.close()

    run(scene())


@pytest.mark.parametrize(
    ("settings", "kind", "words"),
    [
        (Tls(), ConfigError, "needs transport/link/tls/listen_certificate, which is not set"),
        (Tls(listen_certificate="a"), ConfigError, "needs transport/link/tls/listen_private_key"),
        (
            Tls(listen_certificate="a", listen_certificate_base64="a"),
            ConfigError,
            "has both listen_certificate and listen_certificate_base64",
        ),
        (Tls(listen_certificate_base64="??"), ConfigError, "listen_certificate_base64 is not base"),
        (
            Tls(listen_certificate="/nowhere.pem", listen_private_key="/nowhere.key"),
            LinkError,
            "cannot read listen_certificate '/nowhere.pem': No such file",
        ),
    ],
)
def test_what_is_missing_is_named(
    run: Run, settings: Tls, kind: type[Exception], words: str
) -> None:
    async def scene() -> None:
        with pytest.raises(kind, match=words.replace("?", r"\?")):
            await Hall(settings, Tls()).open()

    run(scene())


def test_files_that_are_no_certificates_are_named(run: Run, authority: Authority) -> None:
    paper = authority.sign("server")
    other = authority.sign("other")
    locked = authority.sign("locked", password=b"secret")

    async def scene() -> None:
        for certificate, key, words in (
            (paper.certificate, other.key, "do not belong together"),
            (paper.key, paper.key, "write both in PEM"),
            (locked.certificate, locked.key, "encrypted with a password"),
        ):
            with pytest.raises(LinkError, match=words):
                await Hall(server(Certificate(certificate, key)), Tls()).open()
        hall = Hall(server(paper), Tls(root_ca_certificate=str(paper.key)))
        await hall.open()
        assert "holds no certificate that can be read" in await hall.refusal()
        hall.close()

    run(scene())


def test_two_forms_of_one_thing_on_an_endpoint_are_refused(run: Run) -> None:
    async def scene() -> None:
        with pytest.raises(ConfigError, match="both listen_certificate_file and"):
            await Hall(Tls(), Tls()).open("#listen_certificate_file=a;listen_certificate_base64=b")

    run(scene())


def test_secrets_on_an_endpoint_are_not_repeated_in_errors() -> None:
    text = "tls/a:1#listen_private_key_base64=TOPSECRET;nonsense=1"
    with pytest.raises(LocatorError, match="'nonsense'") as refused:
        check(EndPoint.parse(text), "listen")
    assert "TOPSECRET" not in str(refused.value)
    assert shown(EndPoint.parse("tls/a:1#enable_mtls=true")) == "tls/a:1#enable_mtls=true"


# ---------------------------------------------------------------------------------------- time


def test_a_renewed_certificate_is_shown_to_whoever_comes_next(
    run: Run, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    paper = authority.sign("server", "before")
    after = authority.sign("after", "after")

    async def scene() -> None:
        hall = Hall(server(paper), client(authority))
        await hall.open()
        first = await hall.enter()
        paper.certificate.write_text("half wri")
        between = await hall.enter()
        assert between.link.auth_identifier == "before"
        assert "the certificates of before are used" in caplog.text
        shutil.copy(after.certificate, paper.certificate)
        shutil.copy(after.key, paper.key)
        os.utime(paper.key, ns=(1, 1))
        second = await hall.enter()
        assert (first.link.auth_identifier, second.link.auth_identifier) == ("before", "after")
        await hall.visitors.until(3)
        assert first.link.send(b"still good") == 10
        there = hall.visitors.came[0]
        await there.until(lambda: there.data == b"still good")
        for watched in (first, between, second):
            watched.link.close()
        hall.close()

    run(scene())


def test_a_link_ends_with_the_certificate_if_told_to(
    run: Run, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        hall = Hall(server(authority.sign("server")), client(authority))
        await hall.open()
        lasting = await hall.enter()
        ending = await hall.enter("#close_link_on_expiration=true")
        later = time.time() + 2 * DAY.total_seconds()
        monkeypatch.setattr("zenlake.links.tls.time.time", lambda: later)
        await ending.until(lambda: bool(ending.lost))
        assert "the certificate of the other side has expired" in str(ending.lost[0])
        assert lasting.lost == []
        ending.link.close()
        lasting.link.close()
        hall.close()

    monkeypatch.setattr("zenlake.links.tls.LONGEST_SLEEP", 0.01)
    run(scene())


def test_a_link_to_a_lasting_certificate_leaves_no_alarm_behind(
    run: Run, authority: Authority
) -> None:
    async def scene() -> None:
        hall = Hall(server(authority.sign("server")), client(authority))
        await hall.open()
        here = await hall.enter("#close_link_on_expiration=true")
        here.link.close()
        hall.close()

    run(scene())


# ------------------------------------------------------------------------------------ the rude


def test_a_side_that_does_not_speak_tls_is_named(
    run: Run, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        hall = Hall(server(authority.sign("server")), client(authority))
        place = (await hall.open()).locators()[0]
        _, writer = await asyncio.open_connection("127.0.0.1", int(place.rpartition(":")[2]))
        writer.write(b"\x0b\x00\xc1\x09\x32\x11\x22\x33\x44\x0a\xff\xff\x01")
        assert "it does not speak TLS" in await refusal_of(caplog)
        writer.close()
        hall.close()

        greeted: list[UnicastLink] = []
        loop = asyncio.get_running_loop()
        plain = await listen(EndPoint.parse("tcp/127.0.0.1:0"), loop, greeted.append)
        port = plain.locators()[0].rpartition(":")[2]
        with socket.create_connection(("127.0.0.1", int(port))):
            entering = asyncio.ensure_future(
                connect(EndPoint.parse(f"tls/127.0.0.1:{port}"), loop, PATIENCE)
            )
            await holding(lambda: len(greeted) == 2, seconds=PATIENCE)
            greeted[-1].send(b"\x0b\x00\xc1\x09\x32\x11\x22\x33\x44\x0a\xff\xff\x01")
            with pytest.raises(LinkError, match="it does not speak TLS"):
                await entering
        for link in greeted:
            link.close()
        plain.close()

    run(scene())


def test_who_takes_too_long_for_the_handshake_is_let_go(
    run: Run, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        hall = Hall(server(authority.sign("server")), Tls())
        place = (await hall.open("#tls_handshake_timeout_ms=20")).locators()[0]
        with socket.create_connection(("127.0.0.1", int(place.rpartition(":")[2]))):
            assert "no agreement within the time allowed" in await refusal_of(caplog)
        hall.close()

    run(scene())


def test_a_connection_that_is_cut_is_not_taken_for_a_goodbye(
    run: Run, authority: Authority
) -> None:
    async def scene() -> None:
        hall = Hall(server(authority.sign("server")), client(authority))
        place = (await hall.open()).locators()[0]
        context = ssl.create_default_context(cafile=str(authority.path))
        port = int(place.rpartition(":")[2])
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        await hall.visitors.until(1)
        there = hall.visitors.came[0]
        raw = writer.get_extra_info("socket")
        with socket.socket(fileno=os.dup(raw.fileno())) as double:
            double.shutdown(socket.SHUT_WR)  # no closing alert
        await there.until(lambda: bool(there.lost))
        assert "ended without a goodbye" in str(there.lost[0])
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        hall.close()

    run(scene())


def test_damaged_bytes_end_the_link_with_an_error(run: Run, authority: Authority) -> None:
    async def scene() -> None:
        hall = Hall(server(authority.sign("server")), client(authority))
        await hall.open()
        here = await hall.enter()
        await hall.visitors.until(1)
        there = hall.visitors.came[0]
        here.link._inner.send(b"\x17\x03\x03\x00\x20" + bytes(32))  # type: ignore[attr-defined]
        await there.until(lambda: bool(there.lost))
        assert "the link broke" in str(there.lost[0])
        here.link.close()
        hall.close()

    run(scene())
