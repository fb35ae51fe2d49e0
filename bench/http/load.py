"""Load for HTTP: requests at a pace, readers of events, WebSockets; as its own process.

    python -m bench.http.load requests HOST:PORT PATH RATE SECONDS CONNECTIONS
    python -m bench.http.load streams HOST:PORT KEY MANY SLOW SECONDS
    python -m bench.http.load sockets HOST:PORT KEY MANY SLOW SECONDS

Prints one JSON object. Slow readers connect and never read.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import sys
import time

from zenlake.remote.messages import FROM_CLIENT, encode


async def _answer(reader: asyncio.StreamReader) -> int:
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    if length:
        await reader.readexactly(length)
    return int(head.split(b" ", 2)[1])


async def requests(place: str, path: str, rate: float, seconds: float, many: int) -> None:
    host, _, port = place.rpartition(":")
    request = f"GET {path} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode()
    took: list[float] = []
    wrong = 0
    begin = time.perf_counter() + 0.2
    end = begin + seconds

    async def one(number: int) -> None:
        nonlocal wrong
        reader, writer = await asyncio.open_connection(host, int(port))
        due = begin + number / rate if rate else begin
        while due < end and time.perf_counter() < end:
            now = time.perf_counter()
            if rate and due > now:
                await asyncio.sleep(due - now)
            asked = due if rate else time.perf_counter()
            writer.write(request)
            wrong += await _answer(reader) != 200
            took.append(time.perf_counter() - asked)
            due += many / rate if rate else 0.0
        writer.close()

    await asyncio.gather(*(one(number) for number in range(many)))
    took.sort()
    print(
        json.dumps(
            {
                "requests": len(took),
                "per_second": len(took) / seconds,
                "p50_ms": took[len(took) // 2] * 1e3,
                "p99_ms": took[int(len(took) * 0.99)] * 1e3,
                "wrong": wrong,
            }
        )
    )


async def _read(reader: asyncio.StreamReader, mark: bytes, counts: list[int], end: float) -> None:
    rest = b""
    while time.perf_counter() < end:
        try:
            data = await asyncio.wait_for(
                reader.read(1 << 16), max(0.01, end - time.perf_counter())
            )
        except TimeoutError:
            return
        if not data:
            return
        rest += data
        counts[0] += rest.count(mark)
        rest = rest[-len(mark) + 1 :] if mark not in rest[-len(mark) + 1 :] else b""


async def readers(
    place: str, head: bytes, first: bytes, mark: bytes, many: int, slow: int, seconds: float
) -> None:
    host, _, port = place.rpartition(":")
    counts = [0]
    writers = []
    jobs = []
    end = time.perf_counter() + seconds
    for number in range(many):
        reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 16)
        writer.write(head)
        if first:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(first)
        writers.append(writer)
        if number >= slow:
            jobs.append(_read(reader, mark, counts, end))
    print(json.dumps({"open": many}), flush=True)
    await asyncio.gather(*jobs)
    print(json.dumps({"received": counts[0], "readers": len(jobs)}))
    for writer in writers:
        writer.close()


def _frame(message: bytes) -> bytes:
    """A masked binary frame of WebSocket; messages here are short."""
    mask = secrets.token_bytes(4)
    masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(message))
    return bytes((0x82, 0x80 | len(message))) + mask + masked


def main(arguments: list[str]) -> None:
    what, place, key, *rest = arguments
    numbers = [float(one) for one in rest]
    if what == "requests":
        rate, seconds, many = numbers
        asyncio.run(requests(place, key, rate, seconds, int(many)))
        return
    many, slow, seconds = numbers
    if what == "streams":
        head = f"GET /{key} HTTP/1.1\r\nHost: {place}\r\nAccept: text/event-stream\r\n\r\n".encode()
        first, mark = b"", b"event: PUT"
    else:
        nonce = base64.b64encode(secrets.token_bytes(16)).decode()
        head = (
            f"GET / HTTP/1.1\r\nHost: {place}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {nonce}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        ).encode()
        first = _frame(encode("DeclareSubscriber", 0, FROM_CLIENT, id=0, key=key, origin=2))
        mark = key.encode()
    asyncio.run(readers(place, head, first, mark, int(many), int(slow), seconds))


if __name__ == "__main__":
    main(sys.argv[1:])
