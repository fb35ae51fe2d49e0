"""A status as text for people: a screen of lines, or one line. Pure; colours are the edge's."""

from __future__ import annotations

import re
from typing import Final

from zenlake.printable import printable
from zenlake.supervise.parts import State
from zenlake.supervise.status import Health, PartStatus, Status

__all__ = ["amount", "compiling", "line", "screen", "span"]

LAST: Final = 4
"""Told lines that are shown at the end of a screen."""

BAR: Final = 20
"""The width of a bar, in letters."""


def span(seconds: float) -> str:
    """A time as people say it: `42 s`, `5 min`, `3 h 10 min`, `3 days`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 99.5:
        return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days = hours // 24
    return f"{days:,} days" if days < 1000 else f"{days // 365:,} years"


def amount(count: float) -> str:
    """Bytes as people say them: `1.2 GB`."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 999.5 or unit == "TB":
            return f"{count:.0f} B" if unit == "B" else f"{count:.3g} {unit}"
        count /= 1000
    raise AssertionError


def screen(status: Status, width: int = 80) -> list[str]:
    """The lines of the live screen, cut to a width."""
    lines = [
        f"zenlake up · {status.data} · for {span(status.uptime)} · {_health(status)}",
        "",
    ]
    lines += [_part(part) for part in status.parts]
    lines.append("")
    journal, disk = status.journal, status.disk
    rate = f"{journal.rows_per_s:,.0f} rows/s  {amount(journal.bytes_per_s)}/s"
    lines.append(_row("recorded", f"{rate}  {journal.durable:,} rows durable"))
    if status.lake is not None:
        lines.append(_row("lake", _lake(status)))
    lines.append(_row("ledger", f"{journal.missing:,} missing, {journal.healed:,} healed"))
    lines.append(_row("dropped", _drops(status)))
    kept = f"{amount(journal.size)}" + (f" of {amount(journal.budget)}" if journal.budget else "")
    kept += f", at most {span(journal.retain_age)}" if journal.retain_age else ""
    kept += f", {journal.retired:,} rows retired by rule" if journal.retired else ""
    if status.lake is not None:
        kept += f"; lake {amount(status.lake.size)}"
    lines.append(_row("kept", f"journal {kept}"))
    lines.append(
        _row("disk", f"{amount(disk.free)} of {amount(disk.total)} free, {forecast(status)}")
    )
    lines.append(_row("router", f"{'  '.join(status.locators)}  {status.sessions} sessions"))
    if status.page:
        lines.append(_row("page", status.page))
    if status.http:
        lines.append(_row("http", f"{status.http}/metrics /health /ready /status"))
    lines += [_row("attention", warning) for warning in status.warnings]
    if status.last_error:
        lines.append(_row("last error", status.last_error))
    if status.told:
        lines += ["", *status.told[-LAST:]]
    shown = [printable(one) for one in lines]
    return [one if len(one) <= width else one[: width - 1] + "…" for one in shown]


def compiling(words: str) -> str:
    """Return the row of the compiler in the background, with a bar if `words` say `3 of 100`."""
    found = re.search(r"(\d+) of (\d+)", words)
    if found is None or not int(found[2]):
        return _row("compiling", words)
    full = min(BAR, BAR * int(found[1]) // int(found[2]))
    return _row("compiling", f"{'█' * full}{'░' * (BAR - full)} {words}")


def line(status: Status) -> str:
    """A status in one line, for logs and pipes."""
    journal = status.journal
    parts = [
        f"{status.health}",
        f"{journal.rows_per_s:,.0f} rows/s",
        f"{journal.durable:,} durable",
    ]
    if status.lake is not None:
        parts.append(_lake(status))
    parts.append(f"{journal.missing:,} missing")
    parts.append(f"{journal.dropped + sum(status.drops.values()):,} dropped")
    parts.append(f"disk {amount(status.disk.free)} free, {forecast(status)}")
    return "; ".join(parts)


def forecast(status: Status) -> str:
    """When the disk will be full, in words."""
    full_in = status.disk.full_in
    if full_in is None:
        return "not filling up"
    return "full" if full_in <= 0 else f"full in {span(full_in)}"


def _health(status: Status) -> str:
    if status.health is Health.UNWELL:
        return "NOT WELL"
    return str(status.health)


def _row(name: str, words: str) -> str:
    return f"{name:<10} {words}"


def _part(part: PartStatus) -> str:
    text = f"{part.name:<10} {part.state:<9} {span(part.seconds):<11}"
    if part.restarts:
        text += f" {part.restarts} restart{'s' if part.restarts > 1 else ''}"
    if part.state == State.RESTING and part.again_in is not None:
        text += f" again in {span(max(0.0, part.again_in))}"
    if part.memory_bytes:
        text += f" {amount(part.memory_bytes)}"
    if part.reason and part.state != State.UP:
        text += f" {part.reason}"
    elif part.doing and part.state == State.STARTING:
        text += f" {part.doing}"
    return text.rstrip()


def _lake(status: Status) -> str:
    lake = status.lake
    assert lake is not None
    text = f"{lake.behind:,} rows behind"
    if lake.freshness is not None:
        text += f", fresh to {span(lake.freshness)}"
    return f"{text}, {lake.quarantine:,} in quarantine"


def _drops(status: Status) -> str:
    counts = [f"{many:,} {reason}" for reason, many in status.drops.items() if many]
    if status.journal.dropped:
        counts.insert(0, f"{status.journal.dropped:,} not kept")
    return ", ".join(counts) or "nothing"
