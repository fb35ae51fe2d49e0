"""Sends the same damaged bytes through the interpreted and the compiled build, and compares.

    python tools/fuzz.py --seconds 60            # build/compiled must exist (make fuzz builds it)
    python tools/fuzz.py --seed 7 --cases 20000  # the same buffers again
    python tools/fuzz.py --replay build/fuzz/network-1f3a….hex

Both builds must say the same about every buffer: the same messages and the same bytes when they
are written again, or the same refusal at the same offset. Anything but `DecodeError` is a
failure even if they agree on it, and so is a message that changes by being written and read.
Buffers that fail are saved, and the seed is printed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILDS = {"interpreted": ROOT / "src", "compiled": ROOT / "build" / "compiled"}
SAVED = ROOT / "build" / "fuzz"
GOLDEN = ROOT / "tests" / "golden"
TOGETHER = 200
"""How many buffers travel to a worker at once."""

BUG = "BUG"
Case = tuple[str, bytes]


# ------------------------------------------------------------------------------ inside a build


def outcome(kind: str, data: bytes) -> str:
    """What this build says about a buffer, in words that must be equal everywhere."""
    from zenlake.errors import DecodeError, KeyExprError

    try:
        return READERS[kind](data)
    except DecodeError as error:
        return f"refused at {error.offset}: {error}"
    except KeyExprError as error:
        return f"no key expression: {error}"
    except Exception as error:
        return f"{BUG}: {type(error).__name__} came out: {error}"


def _batch(data: bytes) -> str:
    from zenlake import wire

    found = wire.read_batch(data)
    again = b"".join(map(wire.write, found))
    changed = "" if wire.read_batch(again) == found else f"{BUG}: changed by "
    return f"{changed}{found} = {again.hex()}"


def _one(name: str) -> Callable[[bytes], str]:
    def said(data: bytes) -> str:
        from zenlake import wire

        read = getattr(wire, f"read_{name}")
        found = read(data)
        again = wire.write(found)
        changed = "" if read(again) == found else f"{BUG}: changed by "
        return f"{changed}{found} = {again.hex()} {json.dumps(found.to_dict())}"

    return said


def _link_states(data: bytes) -> str:
    from zenlake import wire

    found = wire.read_link_states(data)
    again = wire.write(wire.LinkStates(entries=found))
    changed = "" if wire.read_link_states(again) == found else f"{BUG}: changed by "
    return f"{changed}{found} = {again.hex()}"


def _skip(data: bytes) -> str:
    from zenlake.errors import DecodeError
    from zenlake.wire.codec_network import read_network, skip_network
    from zenlake.wire.cursor import Reader

    r, s = Reader(data), Reader(data)
    try:
        read_network(r)
    except DecodeError:
        skip_network(s)  # may pass over what reading refuses: it looks at lengths only
        return f"skipped to {s.pos}"
    skip_network(s)
    return f"read and skipped to {s.pos}" if r.pos == s.pos else f"{BUG}: {r.pos} != {s.pos}"


def _packet(data: bytes) -> str:
    from zenlake import xrce

    found = xrce.read_packet(data)
    again = b"".join(map(xrce.write, found))
    changed = "" if xrce.read_packet(again) == found else f"{BUG}: changed by "
    return f"{changed}{found} = {again.hex()}"


def _keys(data: bytes) -> str:
    from zenlake.keys import canonize, includes, intersects

    a, _, b = data.decode("utf-8", "replace").partition("\0")
    a, b = canonize(a), canonize(b)
    said = (intersects(a, b), includes(a, b), includes(b, a))
    if intersects(b, a) != said[0] or (any(said[1:]) and not said[0]):
        return f"{BUG}: {a} and {b}: {said}"
    return f"{a} {b} {said}"


READERS: dict[str, Callable[[bytes], str]] = {
    "batch": _batch,
    "network": _one("network"),
    "scouting": _one("scouting"),
    "link_states": _link_states,
    "skip": _skip,
    "packet": _packet,
    "keys": _keys,
}


def serve() -> None:
    """Answer lines of buffers until they end."""
    for line in sys.stdin:
        said = [outcome(kind, bytes.fromhex(data)) for kind, data in json.loads(line)]
        print(json.dumps(said), flush=True)


# ------------------------------------------------------------------------------ between builds


class Build:
    """A worker process on one build."""

    def __init__(self, name: str) -> None:
        """Start it when it is first asked."""
        self.name = name
        self._process: subprocess.Popen[str] | None = None

    def say(self, cases: list[Case]) -> list[str]:
        """The outcomes of some buffers; a buffer that kills the process is a failure too."""
        said = self._ask(cases)
        if said is not None:
            return said
        one_by_one = [self._ask([case]) for case in cases]
        return [one[0] if one else f"{BUG}: the process died" for one in one_by_one]

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.close()
            self._process.wait()
            self._process.stdout.close()
            self._process = None

    def _ask(self, cases: list[Case]) -> list[str] | None:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, __file__, "--worker"],
                env=os.environ | {"PYTHONPATH": str(BUILDS[self.name]), "PYTHONHASHSEED": "0"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            line = json.dumps([(kind, data.hex()) for kind, data in cases])
            print(line, file=self._process.stdin, flush=True)
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()
            self._process = None
            return None
        said: list[str] = json.loads(answer)
        return said


@dataclass
class Report:
    """What a run found."""

    seed: int
    cases: int = 0
    accepted: int = 0
    failures: list[str] = field(default_factory=list)


def run(seed: int, *, seconds: float = 0, cases: int = 0, only: str = "") -> Report:
    """Fuzz until the time or the number of cases is spent, whichever is given."""
    report = Report(seed)
    builds = [Build(name) for name in BUILDS]
    stream = buffers(random.Random(seed), only)
    stop = time.monotonic() + seconds
    try:
        while (seconds and time.monotonic() < stop) or report.cases < cases:
            judge(builds, [next(stream) for _ in range(TOGETHER)], report)
    finally:
        for build in builds:
            build.close()
    return report


def judge(builds: list[Build], sent: list[Case], report: Report) -> None:
    """Compare what the builds say about some buffers."""
    told = [build.say(sent) for build in builds]
    for case, *said in zip(sent, *told, strict=True):
        report.cases += 1
        report.accepted += not said[0].startswith(("refused", "no key"))
        if len(set(said)) > 1 or said[0].startswith(BUG):
            saved = save(case)
            words = "".join(
                f"\n  {build.name}: {one}" for build, one in zip(builds, said, strict=True)
            )
            report.failures.append(f"{case[0]} {case[1].hex()} ({saved}){words}")


def save(case: Case) -> Path:
    """Keep a buffer that failed."""
    SAVED.mkdir(parents=True, exist_ok=True)
    kind, data = case
    path = SAVED / f"{kind}-{hashlib.sha256(data).hexdigest()[:12]}.hex"
    path.write_text(data.hex() + "\n")
    return path.relative_to(ROOT)


# ------------------------------------------------------------------------------------- buffers

CHUNKS = ("a", "b", "ab", "*", "**", "$*", "a$*", "$*b", "a$*b", "@a", "@b", "", "é", "?", "*a")


def buffers(chance: random.Random, only: str = "") -> Iterator[Case]:
    """Damaged buffers without end."""
    corpus = {kind: found for kind, found in golden().items() if not only or kind == only}
    kinds = list(corpus)
    while True:
        kind = chance.choice(kinds)
        if kind == "keys":
            yield kind, b"\0".join(_key(chance) for _ in range(2))
            continue
        data = bytearray(chance.choice(corpus[kind]))
        for _ in range(chance.choice((0, 1, 1, 1, 2, 3, 8))):
            chance.choice(DAMAGES)(data, chance, corpus[kind])
        yield kind, bytes(data[:4096])


def golden() -> dict[str, list[bytes]]:
    """Real messages of every kind, to begin with."""
    found: dict[str, list[bytes]] = {kind: [b""] for kind in READERS}
    for entry in json.loads((GOLDEN / "vectors-1x.json").read_text()):
        data = bytes.fromhex(entry["hex"])
        kind = entry["layer"].partition(" ")[0].removesuffix("-datagram")
        if kind in ("network", "batch", "scouting"):
            found[kind].append(data)
        if kind == "network":
            found["skip"].append(data)
            if "linkstate" in entry["meaning"]:
                found["link_states"].append(bytes.fromhex(entry["meaning"]["zbuf"]))
    for entry in json.loads((GOLDEN / "vectors-2018.json").read_text())["vectors"]:
        found["packet"].append(bytes.fromhex(entry["hex"]))
    return found


def _key(chance: random.Random) -> bytes:
    return "/".join(chance.choice(CHUNKS) for _ in range(chance.randrange(1, 7))).encode()


def _flip(data: bytearray, chance: random.Random, _: list[bytes]) -> None:
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _set(data: bytearray, chance: random.Random, _: list[bytes]) -> None:
    if data:
        data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF))


def _random(data: bytearray, chance: random.Random, _: list[bytes]) -> None:
    at = chance.randrange(len(data) + 1)
    data[at:at] = chance.randbytes(chance.randrange(1, 10))


def _cut(data: bytearray, chance: random.Random, _: list[bytes]) -> None:
    if data:
        at = chance.randrange(len(data))
        del data[at : at + chance.choice((1, 2, 9, len(data)))]


def _huge(data: bytearray, chance: random.Random, _: list[bytes]) -> None:
    """A length or count that is a lie."""
    if data:
        at = chance.randrange(len(data))
        data[at : at + 1] = chance.choice(
            (b"\xff" * 9, b"\xff" * 4 + b"\x0f", b"\x80" * 8 + b"\x80", b"\xff\x7f", b"\x80\x00")
        )


def _splice(data: bytearray, chance: random.Random, corpus: list[bytes]) -> None:
    other = chance.choice(corpus)
    at, cut = chance.randrange(len(data) + 1), chance.randrange(len(other) + 1)
    data[at:] = other[cut:]


def _repeat(data: bytearray, chance: random.Random, _: list[bytes]) -> None:
    if data:
        at = chance.randrange(len(data))
        data[at:at] = data[at : at + chance.randrange(1, 20)] * chance.randrange(1, 5)


Damage = Callable[[bytearray, random.Random, list[bytes]], None]
DAMAGES: tuple[Damage, ...] = (_flip, _set, _random, _cut, _huge, _splice, _repeat)


# ---------------------------------------------------------------------------------------- main


def main() -> int:
    """Fuzz as the command line says."""
    parser = argparse.ArgumentParser(prog="python tools/fuzz.py")
    parser.add_argument("--seconds", type=float, default=0, help="how long to search")
    parser.add_argument("--cases", type=int, default=0, help="how many buffers at least")
    parser.add_argument("--seed", type=int, help="which buffers (default: others each time)")
    parser.add_argument("--only", choices=sorted(READERS), default="", help="one kind of buffer")
    parser.add_argument("--replay", type=Path, help="a saved buffer")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker:
        serve()
        return 0
    if not BUILDS["compiled"].is_dir():
        sys.exit("build/compiled is not there: run `make build/compiled` first")
    if asked.replay:
        case = asked.replay.name.partition("-")[0], bytes.fromhex(asked.replay.read_text())
        report = Report(seed=0)
        judge([Build(name) for name in BUILDS], [case], report)
    else:
        seed = random.randrange(1 << 32) if asked.seed is None else asked.seed
        print(f"seed {seed}", flush=True)
        seconds = asked.seconds if asked.seconds or asked.cases else 60
        report = run(seed, seconds=seconds, cases=asked.cases, only=asked.only)
    print(f"{report.cases} buffers, {report.accepted} accepted, {len(report.failures)} failures")
    for failure in report.failures[:20]:
        print(failure)
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
