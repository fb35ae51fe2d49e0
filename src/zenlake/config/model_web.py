"""HTTP of a node, under `plugins/rest` as Eclipse Zenoh writes it."""

import ipaddress
from collections.abc import Mapping
from typing import Annotated

from zenlake.config.declare import REQUIRED, key, section, section_of
from zenlake.config.json5 import Plain
from zenlake.config.shape import Mode, Real, TextShape, Whole

__all__ = ["LOOPBACK", "Place", "Port", "Rest", "built", "place", "rest"]

LOOPBACK = "127.0.0.1"

Place = tuple[str, int]


def place(text: str | int) -> Place:
    """The address and the port of `8000`, `"8000"`, `"127.0.0.1:8000"` or `"[::1]:8000"`."""
    text = str(text)
    host, colon, port = text.rpartition(":")
    host = host.strip("[]") if colon else LOOPBACK
    if host == "localhost":
        host = LOOPBACK
    if not (port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) < 1 << 16):
        raise ValueError("a port is a number below 65536")
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise ValueError(f"'{host}' is no address of an interface") from None
    return host, int(port)


def _place_text(text: str) -> str:
    place(text)
    return text


Port = (
    Annotated[int, Whole("", 0, 65535)]
    | Annotated[str, TextShape('an address and a port like "127.0.0.1:8000"', _place_text)]
)
_REST = "zenlake.rest.service.RestService"


@section
class Rest:
    """HTTP: keys as resources, events, downloads, metrics, the page."""

    http_port: Port = key(
        REQUIRED,
        "Where it listens: a port of 127.0.0.1, or `address:port`. An address that other machines "
        "reach needs users or tokens, or `allow_anonymous`.",
        honoured_by=_REST,
    )
    allow_anonymous: bool = key(
        False,
        "Whether requests without credentials are served where other machines can connect.",
        honoured_by=_REST,
    )
    tokens_file: str | None = key(
        None,
        "File of bearer tokens: a line `user:token` for each. Users with passwords are those of "
        "`transport/auth/usrpwd/dictionary_file`.",
        honoured_by=_REST,
    )
    cors_origins: tuple[str, ...] = key(
        (),
        'Origins of web pages that may read answers, such as `https://a.example`; `"*"`: any.',
        honoured_by=_REST,
    )
    hosts: tuple[str, ...] = key(
        (),
        "Names under which it is known, beside its addresses and this machine's name.",
        honoured_by=_REST,
    )
    max_body: Annotated[int, Whole("bytes", 1)] = key(
        64 << 20, "The largest body of a request.", honoured_by=_REST
    )
    max_answer: Annotated[int, Whole("bytes", 1)] = key(
        256 << 20, "How many bytes of payloads one answer may have.", honoured_by=_REST
    )
    max_rows: Annotated[int, Whole("samples", 1)] = key(
        100_000, "How many samples one answer may have.", honoured_by=_REST
    )
    timeout: Annotated[float, Real("seconds", 0.001)] = key(
        10.0, "How long a query waits for replies.", honoured_by=_REST
    )
    max_requests: Annotated[int, Whole("requests", 1)] = key(
        256,
        "How many requests are answered at a time; three quarters of them for one address.",
        honoured_by=_REST,
    )
    max_connections: Annotated[int, Whole("connections", 1)] = key(
        4096,
        "How many connections are open at a time, and at most an eighth of the descriptors of the "
        "process; one address has three quarters of them at most.",
        honoured_by=_REST,
    )
    max_buffered: Annotated[int, Whole("bytes", 1)] = key(
        256 << 20,
        "How many bytes of requests are held at a time, of all connections together, and at least "
        "twice `max_body`; one address holds three quarters of it at most.",
        honoured_by=_REST,
    )
    max_unsent: Annotated[int, Whole("bytes", 1)] = key(
        512 << 20,
        "How many bytes of answers and events are held at a time until clients have taken them, of "
        "all connections together, and at least twice `max_answer`; one address holds three "
        "quarters of it at most.",
        honoured_by=_REST,
    )
    max_streams: Annotated[int, Whole("streams", 1)] = key(
        1024,
        "How many streams of events are open at a time, three quarters of them for one address; "
        "and as many WebSockets of pages.",
        honoured_by=_REST,
    )
    stream_queue: Annotated[int, Whole("samples", 1)] = key(
        1024,
        "How many samples wait for a reader of events that is slow; then the oldest are dropped.",
        honoured_by=_REST,
    )
    work_thread_num: Annotated[int, Whole("threads", 1)] | None = key(
        None, "Threads of Eclipse's plugin; ours has one."
    )
    max_block_thread_num: Annotated[int, Whole("threads", 1)] | None = key(
        None, "Threads of Eclipse's plugin that may wait; ours has none."
    )
    status_file: str | None = key(
        None,
        "File with the status of the service that the node is a part of: `/status` shows it.",
        honoured_by=_REST,
    )
    lake: str | None = key(
        None,
        "Folder of the lake that runs beside the node: PUT and DELETE of `@lake/views/NAME` and "
        "`@lake/alerts/NAME` make and drop its views and alerts.",
        honoured_by=_REST,
    )
    page: bool = key(
        True, "Whether the web page is served, and its WebSocket at `/@ws`.", honoured_by=_REST
    )


def rest(plugins: Mapping[str, Plain], mode: Mode) -> Rest | None:
    """What the member `plugins` of a configuration says of HTTP, if it does."""
    configured = built(plugins, "rest", Rest, mode)
    assert configured is None or isinstance(configured, Rest)
    return configured


def built(plugins: Mapping[str, Plain], name: str, made: type, mode: Mode) -> object | None:
    """The section of one plugin, if a configuration has it; keys like `__path__` are not its."""
    plain = plugins.get(name)
    if not isinstance(plain, dict):
        return None
    members = {name: member for name, member in plain.items() if not name.startswith("__")}
    return section_of(made).build(members, mode)
