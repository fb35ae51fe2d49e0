"""Curves as an SVG picture: both axes logarithmic, so that growth is the slope of a line."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10
from pathlib import Path

WIDTH, HEIGHT = 300, 220
LEFT, RIGHT, TOP, BOTTOM = 62, 12, 34, 40
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#555555")


@dataclass(frozen=True, slots=True)
class Curve:
    """Points under a name."""

    name: str
    points: list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves that share their axes."""

    title: str
    across: str
    unit: str
    curves: list[Curve]


def draw(panels: list[Panel], path: Path) -> None:
    """Write the panels beside each other."""
    parts = [_panel(panel, number * WIDTH) for number, panel in enumerate(panels)]
    width = WIDTH * len(panels)
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" '
        f'width="{width}" height="{HEIGHT}" font-family="sans-serif" font-size="10">\n'
        f'<rect width="{width}" height="{HEIGHT}" fill="white"/>\n' + "".join(parts) + "</svg>\n"
    )


def _panel(panel: Panel, left: int) -> str:
    points = [point for curve in panel.curves for point in curve.points if min(point) > 0]
    low_x, high_x = _decades([x for x, _ in points])
    low_y, high_y = _decades([y for _, y in points])

    def place(x: float, y: float) -> tuple[float, float]:
        across = (log10(x) - low_x) / (high_x - low_x)
        up = (log10(y) - low_y) / (high_y - low_y)
        wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
        return left + LEFT + across * wide, HEIGHT - BOTTOM - up * high

    told = [f'<text x="{left + LEFT}" y="14" font-weight="bold">{panel.title}</text>\n']
    for power in range(low_y, high_y + 1):
        x, y = place(10**low_x, 10**power)
        end = left + WIDTH - RIGHT
        told.append(f'<path d="M{x:.1f} {y:.1f}H{end}" stroke="#ddd" fill="none"/>\n')
        label = _figure(10.0**power, panel.unit)
        told.append(f'<text x="{x - 4:.1f}" y="{y + 3:.1f}" text-anchor="end">{label}</text>\n')
    for power in range(low_x, high_x + 1):
        x, y = place(10**power, 10**low_y)
        told.append(f'<path d="M{x:.1f} {y:.1f}V{TOP}" stroke="#ddd" fill="none"/>\n')
        told.append(f'<text x="{x:.1f}" y="{y + 13:.1f}" text-anchor="middle">{10**power}</text>\n')
    middle = left + (LEFT + WIDTH - RIGHT) / 2
    told.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{panel.across}</text>\n')
    for number, curve in enumerate(panel.curves):
        colour = COLOURS[number % len(COLOURS)]
        way = " ".join(
            f"{x:.1f},{y:.1f}" for x, y in (place(*p) for p in curve.points if min(p) > 0)
        )
        told.append(
            f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="1.5"/>\n'
        )
        x = left + LEFT + 4 + 58 * number
        told.append(f'<text x="{x}" y="27" fill="{colour}">{curve.name}</text>\n')
    return "".join(told)


def _decades(values: list[float]) -> tuple[int, int]:
    low, high = floor(log10(min(values)) + 1e-9), ceil(log10(max(values)) - 1e-9)
    return low, max(high, low + 1)


def _figure(value: float, unit: str) -> str:
    if unit == "s":
        for size, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
            if value >= size * 0.99:
                return f"{value / size:.0f} {name}"
    if unit == "B":
        for size, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")):
            if value >= size * 0.99:
                return f"{value / size:.0f} {name}"
    return f"{value:g}"
