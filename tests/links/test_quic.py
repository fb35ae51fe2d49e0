from __future__ import annotations

import logging
import socket
import time
from pathlib import Path

import pytest

from tests.links.authority import DAY, Authority, Certificate
from tests.links.conftest import Run
from tests.links.watching import PATIENCE, Visitors, connected
from tests.waiting import holding
from zenlake.errors import ConfigError, LinkError, LocatorError
from zenlake.links import check
from zenlake.values.locator import EndPoint


def listening(paper: Certificate, host: str = "127.0.0.1") -> str:
    return (
        f"quic/{host}:0#listen_certificate_file={paper.certificate}"
        f";listen_private_key_file={paper.key}"
    )


@pytest.mark.parametrize(
    ("flaw", "words"),
    [
        ("stranger", "unable to get local issuer certificate"),
        ("expired", "no longer valid"),
        ("elsewhere", "127.0.0.1"),
    ],
)
def test_a_bad_certificate_is_refused_on_both_sides(
    run: Run,
    tmp_path: Path,
    authority: Authority,
    caplog: pytest.LogCaptureFixture,
    flaw: str,
    words: str,
) -> None:
    signer = Authority(tmp_path, "stranger") if flaw == "stranger" else authority
    hosts = ("elsewhere.example",) if flaw == "elsewhere" else ("127.0.0.1",)
    paper = signer.sign("server", hosts=hosts, until=-DAY if flaw == "expired" else DAY)
    trust = f"#root_ca_certificate_file={authority.path}"

    async def scene() -> None:
        visitors = Visitors()
        await visitors.listen(listening(paper))
        place = visitors.listening.locators()[0]
        with pytest.raises(LinkError, match=words):
            await connected(place + trust)
        await holding(lambda: "not let in" in caplog.text, seconds=PATIENCE)
        assert visitors.came == []
        if flaw == "elsewhere":
            here = await connected(f"{place}{trust};verify_name_on_connect=false")
            here.link.close()
        visitors.close()

    caplog.set_level(logging.WARNING, "zenlake.links")
    run(scene())


def test_a_certificate_without_a_common_name_is_as_good(run: Run, authority: Authority) -> None:
    async def scene() -> None:
        visitors = Visitors()
        await visitors.listen(listening(authority.sign("server", name=None), "localhost"))
        places = visitors.listening.locators()
        assert all(place.startswith("quic/localhost:") for place in places)
        here = await connected(f"{places[0]}#root_ca_certificate_file={authority.path}")
        assert here.link.auth_identifier is None
        here.link.close()
        visitors.close()

    run(scene())


def test_certificates_cannot_be_demanded_and_that_is_said(run: Run, authority: Authority) -> None:
    async def scene() -> None:
        with pytest.raises(ConfigError, match="quic cannot demand certificates"):
            await Visitors().listen(listening(authority.sign("server")) + ";enable_mtls=true")

    run(scene())


def test_files_that_are_no_certificates_are_named(run: Run, authority: Authority) -> None:
    paper = authority.sign("server")
    locked = authority.sign("locked", password=b"secret")

    async def scene() -> None:
        for bad in (Certificate(paper.key, paper.key), Certificate(paper.certificate, locked.key)):
            with pytest.raises(LinkError, match="write both in PEM, without a password"):
                await Visitors().listen(listening(bad))

    run(scene())


def test_a_renewed_certificate_is_shown_to_whoever_comes_next(
    run: Run, authority: Authority
) -> None:
    paper = authority.sign("server", "before")

    async def scene() -> None:
        visitors = Visitors()
        await visitors.listen(listening(paper))
        place = f"{visitors.listening.locators()[0]}#root_ca_certificate_file={authority.path}"
        first = await connected(place)
        authority.sign("server", "after")
        second = await connected(place)
        assert (first.link.auth_identifier, second.link.auth_identifier) == ("before", "after")
        first.link.close()
        second.link.close()
        visitors.close()

    run(scene())


def test_a_link_ends_with_the_certificate_if_told_to(
    run: Run, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        visitors = Visitors()
        await visitors.listen(listening(authority.sign("server")))
        trust = f"#root_ca_certificate_file={authority.path};close_link_on_expiration=true"
        here = await connected(visitors.listening.locators()[0] + trust)
        later = time.time() + 2 * DAY.total_seconds()
        monkeypatch.setattr("zenlake.links.quic_side.time.time", lambda: later)
        await here.until(lambda: bool(here.lost))
        assert "the certificate of the other side has expired" in str(here.lost[0])
        here.link.close()
        visitors.close()

    monkeypatch.setattr("zenlake.links.quic_side.LONGEST_SLEEP", 0.01)
    run(scene())


def test_silence_is_given_up_in_time(run: Run, authority: Authority) -> None:
    async def scene() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mute:
            mute.bind(("127.0.0.1", 0))
            place = f"quic/127.0.0.1:{mute.getsockname()[1]}"
            with pytest.raises(LinkError, match=r"cannot connect to .*: no answer in time"):
                await connected(place, timeout=0.05)

    run(scene())


def test_noise_is_passed_over_and_strangers_are_bounded(
    run: Run, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        visitors = Visitors()
        await visitors.listen(listening(authority.sign("server")))
        place = visitors.listening.locators()[0]
        port = int(place.rpartition(":")[2])
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for noise in (b"", b"\xff", b"hello", b"\xc0\0\0\0\x01\x14short", bytes(1200)):
                stranger.sendto(noise, ("127.0.0.1", port))
        trust = f"#root_ca_certificate_file={authority.path}"
        here = await connected(place + trust)  # knocks until it sends
        with pytest.raises(LinkError, match="no answer in time"):
            await connected(place + trust, timeout=0.1)
        here.link.send(b"in")
        await visitors.until(1)
        here.link.close()
        visitors.close()

    monkeypatch.setattr("zenlake.links.quic.MAX_KNOCKING", 1)
    run(scene())


@pytest.mark.parametrize("metadata", ["rel=0", "multistream=1", "mixed_rel=1"])
def test_what_one_reliable_stream_is_not_is_refused_by_name(metadata: str) -> None:
    with pytest.raises(LocatorError, match=f"'{metadata}' is not honoured over quic"):
        check(EndPoint.parse(f"quic/a:1?{metadata}"), "connect")
