"""What people write on a command line: sizes and times such as `64MiB` and `7d`, and folders."""

from __future__ import annotations

import re

import typer

SIZES = {
    "": 1,
    "b": 1,
    "k": 10**3,
    "kb": 10**3,
    "m": 10**6,
    "mb": 10**6,
    "g": 10**9,
    "gb": 10**9,
    "t": 10**12,
    "tb": 10**12,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
}
TIMES = {"": 1.0, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]*)")


def size(text: str | None, option: str) -> int | None:
    """How many bytes a text means; None stays None."""
    if text is None:
        return None
    quantity = _QUANTITY.fullmatch(text.strip())
    unit = None if quantity is None else SIZES.get(quantity[2].lower())
    if quantity is None or unit is None:
        raise typer.BadParameter(
            f"'{text}' is no size; write one like 500MB or 2GiB", param_hint=option
        )
    return int(float(quantity[1]) * unit)


def duration(text: str | None, option: str) -> float | None:
    """How many seconds a text means; None stays None."""
    if text is None:
        return None
    quantity = _QUANTITY.fullmatch(text.strip())
    unit = None if quantity is None else TIMES.get(quantity[2])
    if quantity is None or unit is None:
        raise typer.BadParameter(
            f"'{text}' is no time; write one like 30s, 12h or 7d", param_hint=option
        )
    return float(quantity[1]) * unit


def rules(texts: list[str] | None, option: str) -> list[tuple[str, float]]:
    """Key expressions and seconds, out of texts like `camera/**=2h`."""
    found = []
    for text in texts or ():
        keys, _, time = text.rpartition("=")
        if not keys:
            raise typer.BadParameter(
                f"'{text}' is no rule; write one like 'camera/**=2h'", param_hint=option
            )
        found.append((keys, duration(time, option) or 0.0))
    return found


def local(folder: str, option: str) -> None:
    """Refuse a URI where a folder of this machine is wanted."""
    if "://" in folder:
        raise typer.BadParameter(
            f"'{folder}' is a URI; a journal is written to a folder of this machine",
            param_hint=option,
        )
