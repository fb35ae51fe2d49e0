"""The WebSocket protocol of browsers, under `plugins/remote_api` as Eclipse Zenoh writes it."""

from collections.abc import Mapping
from typing import Annotated

from zenlake.config.declare import REQUIRED, key, section
from zenlake.config.json5 import Plain
from zenlake.config.model_web import Port, built
from zenlake.config.shape import Mode, Whole

__all__ = ["RemoteApi", "SecureWebSocket", "remote_api"]

_REMOTE = "zenlake.remote.service.RemoteApiService"


@section
class SecureWebSocket:
    """A certificate, for wss."""

    certificate_path: str = key(REQUIRED, "File of the certificate, PEM.", honoured_by=_REMOTE)
    private_key_path: str = key(REQUIRED, "File of its private key, PEM.", honoured_by=_REMOTE)


@section
class RemoteApi:
    """The WebSocket protocol of browsers (zenoh-ts)."""

    websocket_port: Port = key(
        10000,
        "Where it listens: a port of 127.0.0.1, or `address:port`. An address that other machines "
        "reach needs users or tokens, or `allow_anonymous`.",
        honoured_by=_REMOTE,
    )
    secure_websocket: SecureWebSocket | None = key(
        None, "A certificate: it speaks wss, not ws.", honoured_by=_REMOTE
    )
    allow_anonymous: bool = key(
        False,
        "Whether clients without credentials are served where other machines can connect.",
        honoured_by=_REMOTE,
    )
    tokens_file: str | None = key(
        None, "File of bearer tokens: a line `user:token` for each.", honoured_by=_REMOTE
    )
    origins: tuple[str, ...] = key(
        (),
        "Web pages of other origins that may connect, such as `https://a.example`; those of this "
        'machine may, and with `"*"` all may.',
        honoured_by=_REMOTE,
    )
    hosts: tuple[str, ...] = key(
        (),
        "Names under which it is known, beside its addresses and this machine's name.",
        honoured_by=_REMOTE,
    )
    max_clients: Annotated[int, Whole("clients", 1)] = key(
        1024,
        "How many clients are connected at a time; three quarters of them from one address.",
        honoured_by=_REMOTE,
    )
    max_connections: Annotated[int, Whole("connections", 1)] = key(
        4096,
        "How many connections are open at a time, and at most an eighth of the descriptors of the "
        "process; one address has three quarters of them at most.",
        honoured_by=_REMOTE,
    )
    max_buffered: Annotated[int, Whole("bytes", 1)] = key(
        256 << 20,
        "How many bytes of messages are held while they come in, of all clients together, and at "
        "least twice `max_message`; one address holds three quarters of it at most.",
        honoured_by=_REMOTE,
    )
    max_unsent: Annotated[int, Whole("bytes", 1)] = key(
        512 << 20,
        "How many bytes of messages wait for clients at a time, of all together, and at least "
        "twice `queue_bytes`; one address has three quarters of it at most. Samples beyond are "
        "dropped and counted.",
        honoured_by=_REMOTE,
    )
    max_declarations: Annotated[int, Whole("declarations", 1)] = key(
        10_000, "How many declarations and open queries one client may have.", honoured_by=_REMOTE
    )
    max_message: Annotated[int, Whole("bytes", 1)] = key(
        64 << 20, "The largest message.", honoured_by=_REMOTE
    )
    queue_bytes: Annotated[int, Whole("bytes", 1)] = key(
        16 << 20,
        "How much waits for a client that is slow; samples beyond are dropped and counted.",
        honoured_by=_REMOTE,
    )


def remote_api(plugins: Mapping[str, Plain], mode: Mode) -> RemoteApi | None:
    """What the member `plugins` of a configuration says of the remote API, if it does."""
    configured = built(plugins, "remote_api", RemoteApi, mode)
    assert configured is None or isinstance(configured, RemoteApi)
    return configured
