"""Sessions in every mode and over every plain link, whoever connects."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.interop.peer import Peer, Plain, large
from tests.interop.processes import connect, listen, meanwhile

pytestmark = pytest.mark.interop

LOW_LATENCY: Plain = {
    "transport__unicast__lowlatency": True,
    "transport__unicast__qos__enabled": False,
}
COMPRESSION: Plain = {"transport__unicast__compression__enabled": True}
NO_QOS: Plain = {"transport__unicast__qos__enabled": False}
SMALL: Plain = {
    "transport__link__tx__batch_size": 1024,
    "transport__link__tx__sequence_number_resolution": "8bit",
}
SHORT: Plain = {"transport__link__tx__sequence_number_resolution": "16bit"}

#: By name: the settings of the two sides.
MODES: dict[str, tuple[Plain, Plain]] = {
    "plain": ({}, {}),
    "low latency": (LOW_LATENCY, LOW_LATENCY),
    "compression": (COMPRESSION, COMPRESSION),
    "compression in small batches": ({**COMPRESSION, **SMALL}, {**COMPRESSION, **SMALL}),
    "no priorities": (NO_QOS, NO_QOS),
    "small batches": (SMALL, SMALL),
    "compression without priorities": ({**COMPRESSION, **NO_QOS}, {**COMPRESSION, **NO_QOS}),
    # What only one side wants is not done, or done as the weaker side can.
    "compression here only": (COMPRESSION, {}),
    "compression there only": ({}, COMPRESSION),
    "no priorities here": (NO_QOS, {}),
    "no priorities there": ({}, NO_QOS),
    "low latency here only": (LOW_LATENCY, NO_QOS),
    "low latency there only": (NO_QOS, LOW_LATENCY),
    "small batches here": (SMALL, {}),
    "small batches there": ({}, SMALL),
    "short numbers": (SHORT, {}),
}

who = pytest.mark.parametrize(
    "ours_connects", [True, False], ids=["ours connects", "theirs connects"]
)

#: Sizes that fit into one batch of any mode, that need several, and many.
SIZES = [3, 500, 20_000, 60_000, 400_000]


def exchange(here: Peer, there: Peer, sizes: list[int]) -> None:
    """Have both sides hear, ask and answer each other."""
    for speaker, listener in ((here, there), (there, here)):
        key = f"mode/{speaker.zid()}"
        listener.subscribe("s", f"{key}/**")
        listener.queryable("q", f"{key}/**", [{"payload": "yes"}])
        speaker.publisher("p", f"{key}/p", congestion_control="BLOCK")
        speaker.querier("k", f"{key}/q")
        speaker.until("p")
        speaker.until("k")
        publishing = meanwhile(lambda s=speaker: [s.publish("p", size) for size in sizes])
        heard = [one["payload"] for one in listener.take("s", len(sizes))]
        publishing.result()
        shown = [large(size) for size in sizes]
        assert heard == [
            data.decode("latin-1")
            if len(data) <= 256
            else [len(data), hashlib.md5(data).hexdigest()]
            for data in shown
        ]
        assert [one["payload"] for one in speaker.ask("k")] == ["yes"]
        numbers = meanwhile(speaker.publish_many, "p", 2000)
        assert [one["payload"] for one in listener.take("s", 2000)] == [
            str(number) for number in range(2000)
        ]
        numbers.result()


@who
@pytest.mark.parametrize("mode", MODES)
def test_a_session_speaks_in_every_mode(
    ours: Peer, theirs: Peer, mode: str, ours_connects: bool
) -> None:
    here, there = MODES[mode]
    if ours_connects:
        connect(ours, listen(theirs, **there), "client", **here)
    else:
        connect(theirs, listen(ours, **here), "client", **there)
    # In low latency nothing is cut in pieces.
    exchange(ours, theirs, SIZES[:3] if mode == "low latency" else SIZES)


def test_what_is_too_large_for_low_latency_is_dropped_at_once_and_the_session_goes_on(
    ours: Peer, theirs: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    connect(ours, listen(theirs, **LOW_LATENCY), "client", **LOW_LATENCY)
    theirs.subscribe("s", "large/*")
    ours.publisher("p", "large/p", congestion_control="BLOCK")
    ours.until("p")
    ours.publish("p", 100_000)
    ours.publish("p", "after")
    assert theirs.take("s")[0]["payload"] == "after"
    assert "low-latency" in caplog.text


@who
def test_udp_carries_a_session(ours: Peer, theirs: Peer, ours_connects: bool) -> None:
    connecting, listening = (ours, theirs) if ours_connects else (theirs, ours)
    connect(connecting, listen(listening, protocol="udp"), "client")
    assert ours.links() == ["udp"]
    for speaker, listener in ((ours, theirs), (theirs, ours)):
        key = f"udp/{speaker.zid()}"
        listener.subscribe("s", f"{key}/**")
        speaker.publisher("p", f"{key}/p")
        speaker.until("p")
        # One at a time: a datagram that finds no room is lost, as datagrams are.
        for size in (3, 500, 8000):
            speaker.publish("p", size)
            [sample] = listener.take("s")
            data = large(size)
            assert sample["payload"] in (
                data.decode("latin-1"),
                [size, hashlib.md5(data).hexdigest()],
            )


@who
def test_a_unix_socket_carries_a_session(
    ours: Peer, theirs: Peer, ours_connects: bool, tmp_path: Path
) -> None:
    connecting, listening = (ours, theirs) if ours_connects else (theirs, ours)
    place = f"unixsock-stream/{tmp_path}/socket"
    listening.open("peer", listen__endpoints=[place])
    connect(connecting, place, "client")
    assert ours.links() == ["unixsock-stream"]
    exchange(ours, theirs, SIZES)


@who
def test_an_ipv6_address_carries_a_session(ours: Peer, theirs: Peer, ours_connects: bool) -> None:
    connecting, listening = (ours, theirs) if ours_connects else (theirs, ours)
    port = listen(listening).rpartition(":")[2]
    listening.close()
    place = f"tcp/[::1]:{port}"
    listening.open("peer", listen__endpoints=[place])
    connect(connecting, place, "client")
    exchange(ours, theirs, SIZES[:2])


def credentials(user: str, password: str) -> Plain:
    return {
        "transport__auth__usrpwd__user": user,
        "transport__auth__usrpwd__password": password,
    }


@pytest.fixture
def dictionary(tmp_path: Path) -> Plain:
    """The settings of a node that lets in those it knows."""
    path = tmp_path / "users"
    path.write_text("alice:secret\nbob:word:with:colons\n")
    path.chmod(0o600)
    return {"transport__auth__usrpwd__dictionary_file": str(path)}


@who
def test_who_knows_the_password_is_let_in(
    ours: Peer, theirs: Peer, ours_connects: bool, dictionary: Plain
) -> None:
    connecting, listening = (ours, theirs) if ours_connects else (theirs, ours)
    place = listen(listening, **dictionary)
    connect(connecting, place, "client", **credentials("alice", "secret"))
    exchange(ours, theirs, [3])


@who
@pytest.mark.parametrize(
    "given",
    [credentials("alice", "wrong"), credentials("mallory", "secret"), {}],
    ids=["wrong password", "unknown user", "nothing"],
)
def test_who_does_not_is_kept_out(
    ours: Peer, theirs: Peer, ours_connects: bool, dictionary: Plain, given: Plain
) -> None:
    connecting, listening = (ours, theirs) if ours_connects else (theirs, ours)
    place = listen(listening, **dictionary)
    with pytest.raises(Exception, match=place if ours_connects else "ZError"):
        connect(connecting, place, "client", **given)
    assert listening.neighbours() == []
    connect(connecting, place, "client", **credentials("alice", "secret"))
    exchange(ours, theirs, [3])


def key_pair(folder: Path, name: str) -> Plain:
    """The settings of a node with a key of its own, in the form that both read."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    private.chmod(0o600)
    public.write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.PKCS1)
    )
    return {
        "transport__auth__pubkey__private_key_file": str(private),
        "transport__auth__pubkey__public_key_file": str(public),
    }


# Eclipse's nodes read no file of known keys and so let nobody in: they only connect.
def test_a_real_node_whose_key_is_known_is_let_in(ours: Peer, theirs: Peer, tmp_path: Path) -> None:
    known = {"transport__auth__pubkey__known_keys_file": str(tmp_path / "theirs.pub")}
    its_key = key_pair(tmp_path, "theirs")
    place = listen(ours, **key_pair(tmp_path, "ours"), **known)
    connect(theirs, place, "client", **its_key)
    exchange(ours, theirs, [3])


@pytest.mark.parametrize("keyed", [True, False], ids=["an unknown key", "no key"])
def test_a_real_node_whose_key_is_not_known_is_kept_out(
    ours: Peer, theirs: Peer, tmp_path: Path, keyed: bool
) -> None:
    place = listen(ours, **key_pair(tmp_path, "ours"))
    with pytest.raises(Exception, match="ZError"):
        connect(theirs, place, "client", **(key_pair(tmp_path, "theirs") if keyed else {}))
    assert ours.neighbours() == []


def test_a_real_node_with_a_key_refuses_ours_in_words(
    ours: Peer, theirs: Peer, tmp_path: Path
) -> None:
    place = listen(theirs, **key_pair(tmp_path, "theirs"))
    with pytest.raises(Exception, match=place):
        connect(ours, place, "client", **key_pair(tmp_path, "ours"))
    assert theirs.neighbours() == []
