"""Meshes of up to a thousand routers and a hundred thousand clients, simulated on one machine.

    PYTHONPATH=build/compiled python -m bench.scale
    ... --routers 10,100 --topologies ring --clients 1000
    ... --json build/scale.json --picture docs/pictures/scale.svg

Every router and client is the real thing (`zenlake.node`), with real bytes between them; only the
wires and the clock are simulated (5 ms from router to router). For each mesh: what one link that
breaks, and comes back, means to all. Messages, bytes and times are the same in every run; what the
processor spends and memory are of this machine, for a router in the half that is farthest away.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
from collections.abc import Callable
from dataclasses import asdict
from math import log, log2
from pathlib import Path
from typing import Any

from bench.scale.crowd import Crowd, grow_to
from bench.scale.mesh import Grown, tell
from bench.scale.picture import Curve, Panel, draw
from bench.scale.topologies import TOPOLOGIES

HEAD = (
    f"{'topology':12}{'routers':>8}{'links':>7}{'messages':>10}{'bytes':>11}{'converged':>11}"
    f"{'CPU far':>10}{'most':>9}{'back: bytes':>13}{'converged':>11}{'CPU far':>10}"
    f"{'memory':>10}{'growing':>9}{'heard':>7}"
)


def told(grown: Grown) -> str:
    """A line about a mesh."""
    cut, back = grown.cut, grown.mended
    return (
        f"{grown.topology:12}{grown.routers:8}{grown.links:7}{cut.messages:10}{cut.octets:11}"
        f"{cut.seconds:9.2f} s{cut.spent * 1e3:7.2f} ms{cut.most * 1e3:6.1f} ms"
        f"{back.octets:13}{back.seconds:9.2f} s{back.spent * 1e3:7.2f} ms"
        f"{grown.memory / 1e6:7.2f} MB{grown.growing:7.0f} s{grown.delivered:4}/10"
    )


class Apart:
    """A measurement in a process of its own, so that memory is its own."""

    def __init__(self, measurement: Callable[..., None], *arguments: Any) -> None:
        """Begin."""
        processes = multiprocessing.get_context("spawn")
        self._results, told = processes.Pipe(duplex=False)
        self._process = processes.Process(target=measurement, args=(*arguments, told))
        self._process.start()
        told.close()

    def next(self) -> Any:
        """What it found; None if it ended before that."""
        try:
            return self._results.recv()
        except EOFError:
            self._process.join()
            print(f"stopped: exit code {self._process.exitcode}", flush=True)
            return None


def growth(points: list[tuple[float, float]]) -> float:
    """The power of the size by which the last points grow."""
    (x1, y1), (x2, y2) = points[-2:]
    return log(y2 / y1) / log(x2 / x1)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--routers", default="10,32,100,316,1000")
    arguments.add_argument("--topologies", default=",".join(TOPOLOGIES))
    arguments.add_argument("--clients", default="1000,10000,100000")
    arguments.add_argument("--json", type=Path)
    arguments.add_argument("--picture", type=Path)
    asked = arguments.parse_args()
    meshes: list[Grown] = []
    sizes = [int(size) for size in asked.routers.split(",") if size]
    topologies = [name for name in asked.topologies.split(",") if name]
    print(HEAD, flush=True)
    for size in sizes:
        for topology in topologies:
            grown = Apart(tell, topology, size).next()
            if grown is not None:
                meshes.append(grown)
                print(told(grown), flush=True)
    for topology in topologies:
        far = [(float(m.routers), m.cut.spent) for m in meshes if m.topology == topology]
        if len(far) > 1:
            (n1, _), (n2, _) = far[-2:]
            even = log(n2 * log2(n2) / (n1 * log2(n1))) / log(n2 / n1)
            print(
                f"{topology}: far away the processor's work grows as n^{growth(far):.2f}; ", end=""
            )
            print(f"n log n is n^{even:.2f} there")
    crowds: list[Crowd] = []
    counts = [int(count) for count in asked.clients.split(",") if count]
    if counts:
        apart = Apart(grow_to, counts)
        print(f"\n{'clients':>8}{'memory of each router':>24}{'its router':>14}", end="")
        print(f"{'other routers':>15}{'leaving':>12}", flush=True)
        for _ in counts:
            crowd: Crowd | None = apart.next()
            if crowd is None:
                break
            crowds.append(crowd)
            print(
                f"{crowd.clients:8}{crowd.memory:15.0f} B/client{crowd.opening * 1e6:11.0f} µs"
                f"{crowd.elsewhere * 1e6:12.1f} µs{crowd.leaving * 1e6:9.0f} µs",
                flush=True,
            )
    if asked.json is not None:
        figures = {"meshes": [asdict(m) for m in meshes], "clients": [asdict(c) for c in crowds]}
        asked.json.write_text(json.dumps(figures, indent=2))
    if asked.picture is not None:
        draw(panels(meshes, crowds), asked.picture)


def panels(meshes: list[Grown], crowds: list[Crowd]) -> list[Panel]:
    """The curves of all that was measured."""

    def of(figure: str) -> list[Curve]:
        curves: dict[str, list[tuple[float, float]]] = {}
        for mesh in meshes:
            values = {
                "spent": mesh.cut.spent,
                "octets": float(mesh.cut.octets),
                "seconds": mesh.cut.seconds,
                "memory": float(mesh.memory),
            }
            curves.setdefault(mesh.topology, []).append((mesh.routers, values[figure]))
        return [Curve(name, points) for name, points in curves.items()]

    found = (
        []
        if not meshes
        else [
            Panel("processor of a router far from a cut", "routers", "s", of("spent")),
            Panel("link state of a cut, on all links", "routers", "B", of("octets")),
            Panel("until all have new trees", "routers", "s", of("seconds")),
            Panel("memory of a router", "routers", "B", of("memory")),
        ]
    )
    if crowds:
        curves = [
            Curve("its router", [(c.clients, c.opening) for c in crowds]),
            Curve("others", [(c.clients, c.elsewhere) for c in crowds]),
            Curve("leaving", [(c.clients, c.leaving) for c in crowds]),
        ]
        found.append(Panel("processor for a client", "clients of four routers", "s", curves))
    return found


if __name__ == "__main__":
    main()
