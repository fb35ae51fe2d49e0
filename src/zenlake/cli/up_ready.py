"""What `zenlake up` prints when its router is up: where it listens, and commands to try."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from zenlake.supervise.parts_folder import OPERATOR, RUN

if TYPE_CHECKING:
    from zenlake.supervise.output import Output
    from zenlake.supervise.plan import Plan
    from zenlake.supervise.supervisor import Supervisor

__all__ = ["DATA", "tell_router"]

DATA = Path("zenlake-data")


def tell_router(plan: Plan, supervisor: Supervisor, output: Output, seconds: float) -> None:
    """Say that the router can be used, and which commands to try, to be copied."""
    places = supervisor.reports.locators
    command = os.environ.get("ZENLAKE_COMMAND", "zenlake")
    lines = [f"{command} {line}" for line in _tries(plan, places)]
    fact = {
        "ready": "router",
        "locators": places,
        "data": plan.shown,
        "http": supervisor.reports.http,
        "page": supervisor.reports.page,
        "try": lines,
    }
    lead = (
        "Programs on this machine find it by themselves, or connect to"
        if _found_by_scouting(plan)
        else "Programs connect to"
    )
    text = [f"The router is up after {seconds:.1f} s and records. {lead}"]
    text.append(f"  {'  '.join(places) or 'nothing: it listens nowhere, give -l tcp/[::]:7447'}")
    if supervisor.reports.page:
        text.append(f"The page, and every key over HTTP: {supervisor.reports.page}")
    if places and all(map(_stays_here, places)) and not plan.guarded:
        text.append("Nobody else can connect; --open lets users and certificates in.")
    text.append(f"All it hears is kept in {plan.shown}. In another terminal, try:")
    text += [f"  {line}" for line in lines]
    if plan.lake is not None:
        text.append("The lake starts; samples that come meanwhile wait for it in the journal.")
    output.write("\n".join(text), fact)


def _tries(plan: Plan, places: list[str]) -> list[str]:
    if plan.guarded or not any(place.startswith("tcp/") for place in places):
        aim = f" -c {shlex.quote(str(Path(plan.shown) / RUN / OPERATOR))}"
    elif _found_by_scouting(plan):
        aim = ""
    else:
        aim = f" -e {shlex.quote(_near(places))}"
    lines = [
        f"put -k demo/hello -p 'hello from zenlake'{aim}",
        f"get -s 'demo/**'{aim}",
        f"get -s 'demo/**?_time=[now(-1m)..]'{aim}",
        f"sub -k 'demo/**'{aim}",
    ]
    away = plan.shown != str(DATA)
    if plan.lake is not None:
        query = "SELECT key, time, cast(value AS string) FROM samples ORDER BY time DESC"
        place = f" --lake {shlex.quote(str(Path(plan.shown) / 'lake'))}" if away else ""
        lines.append(f'sql "{query} LIMIT 5"{place}')
    return [*lines, "status" + (f" --data {shlex.quote(plan.shown)}" if away else "")]


def _found_by_scouting(plan: Plan) -> bool:
    """Whether programs on this machine find the router without being told where it is.

    Options may have changed anything, so that only a router without them is sure to be found, and
    only where there is an interface that multicast works on.
    """
    if not plan.found_by_scouting:
        return False
    from zenlake.links.interfaces import interfaces

    return any(one.up and one.multicast and not one.loopback for one in interfaces())


def _near(places: list[str]) -> str:
    """The place that a program on this machine takes: loopback if the router listens there."""
    return next(filter(_stays_here, places), places[0])


def _stays_here(place: str) -> bool:
    return re.search(r"/(127\.|localhost|\[::1\])", place) is not None
