"""What the doctor finds on a machine, check by check."""

from __future__ import annotations

import shutil
import socket
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.cli.programs import endpoint
from zenlake.cli import machine, neighbourhood
from zenlake.cli.named_files import certificates, expiry
from zenlake.config import Config

DAY = 86_400.0


def certificate(until: datetime) -> str:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(until - timedelta(days=90))
        .not_valid_after(until)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM).decode()


@pytest.mark.parametrize("year", [2031, 2049, 2050, 2099])
def test_the_end_of_a_certificate_is_read(year: int) -> None:
    until = datetime(year, 3, 4, 5, 6, 7, tzinfo=UTC)
    assert expiry(certificate(until)) == until.timestamp()


def test_a_text_without_a_certificate_has_no_end() -> None:
    assert expiry("no certificate") is None
    assert expiry("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n") is None


def test_certificates_are_judged_by_the_time_that_is_left(tmp_path: Path) -> None:
    until = datetime(2031, 1, 31, tzinfo=UTC)
    file = tmp_path / "ca.pem"
    file.write_text(certificate(until))
    config = Config()
    config.insert_json5("transport/link/tls/root_ca_certificate", f'"{file}"')
    config.insert_json5("transport/link/tls/listen_certificate", f'"{tmp_path / "none.pem"}"')
    words = {
        days: [finding.word for finding in certificates(config.resolved, now)]
        for days in (30, 3, -1)
        if (now := until.timestamp() - days * DAY)
    }
    assert words == {30: ["fail", "ok"], 3: ["fail", "warn"], -1: ["fail", "fail"]}


def test_a_full_disk_fails_and_a_small_one_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")
    words = []
    for free in (100 * 10**9, 10**9, 10**6):
        room = type(usage)(200 * 10**9, 0, free)
        monkeypatch.setattr(shutil, "disk_usage", lambda _, room=room: room)
        words.append(machine.disk("nowhere/yet").word)
    assert words == ["ok", "warn", "fail"]


def test_a_clock_from_before_the_installation_fails() -> None:
    assert machine.own_clock(0.0).word == "fail"


def test_a_port_that_something_else_holds_is_told_from_a_router() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        over = threading.Event()

        def hang_up() -> None:
            server.settimeout(0.05)
            while not over.is_set():
                try:
                    server.accept()[0].close()
                except TimeoutError:
                    continue

        deaf = threading.Thread(target=hang_up)
        deaf.start()
        try:
            told = neighbourhood.taken("tcp", server.getsockname()[1])
        finally:
            over.set()
            deaf.join()
    assert told.word == "warn"
    assert "no Zenoh session" in told.found


def test_our_own_router_on_the_port_is_known() -> None:
    import zenlake

    where = endpoint()
    config = Config.from_json5(
        f'{{mode: "router", id: "aa11", listen: {{endpoints: ["{where}"]}}, '
        "scouting: {multicast: {enabled: false}}, adminspace: {enabled: true}}"
    )
    with zenlake.open(config):
        told = neighbourhood.taken("tcp", int(where.rpartition(":")[2]))
    assert told.word == "ok"
    assert told.found == f"a Zenoh node listens: router aa11 zenlake v{zenlake.__version__}"
