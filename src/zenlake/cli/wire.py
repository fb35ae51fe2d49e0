"""`zenlake wire`: what some bytes of Zenoh say, field by field."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from zenlake.cli.pages import examples
from zenlake.printable import json_text

if TYPE_CHECKING:
    from zenlake.wire.dissector.dissect import Dissection

MOST_BYTES = 1 << 20
STYLES = {"message": "bold", "bits": "dim", "broken": "bold red", "head": "dim", "more": "dim"}


@examples(
    "zenlake wire c1 09 00",
    "xxd -p batch.bin | zenlake wire --batch",
)
def wire(
    hex: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="HEX",
            help="The bytes in hexadecimal; blanks, colons and 0x are ignored. With - or "
            "nothing they are read from the standard input.",
            show_default=False,
        ),
    ] = None,
    batch: Annotated[
        bool, typer.Option("--batch", help="It is a batch of transport messages.")
    ] = False,
    network: Annotated[bool, typer.Option("--network", help="It is one network message.")] = False,
    scouting: Annotated[
        bool, typer.Option("--scouting", help="It is a scouting datagram.")
    ] = False,
    old: Annotated[
        bool, typer.Option("--2018", help="It is a packet of the 2018 protocol.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Dissect bytes of the protocol, field by field.

    Shows offset, bytes, value and meaning of each field. Where bytes break it says why, and ends
    with 1.
    """
    forms = {"--batch": batch, "--network": network, "--scouting": scouting, "--2018": old}
    asked = [name for name, wanted in forms.items() if wanted]
    if len(asked) > 1:
        raise typer.BadParameter(f"{' and '.join(asked)}: give one of them, or none")
    data = read_hex(_given(hex or []))
    dissection = _dissect(data, asked[0].removeprefix("--") if asked else "")
    if as_json:
        typer.echo(json_text(dissection.to_dict(), indent=2))
    elif sys.stdout.isatty():
        _print_in_colour(dissection)
    else:
        from zenlake.wire.dissector.text import text

        typer.echo(text(dissection), nl=False)
    if dissection.broken is not None:
        raise typer.Exit(1)


def read_hex(text: str) -> bytes:
    """The bytes that people write as `c109f2`, `c1 09 f2`, `c1:09:f2` or `0xc1, 0x09`."""
    digits = []
    for word in re.split(r"[\s:,;]+", text.strip()):
        part = word[2:] if word[:2].lower() == "0x" else word
        if strange := re.search(r"[^0-9a-fA-F]", part):
            raise typer.BadParameter(f"{strange[0]!r} in {_cut(word)!r} is not a hexadecimal digit")
        if len(part) % 2:
            count = f"{len(part)} digit{'' if len(part) == 1 else 's'}"
            raise typer.BadParameter(f"{_cut(word)!r} has {count}; a byte is written with two")
        digits.append(part)
    data = bytes.fromhex("".join(digits))
    if not data:
        raise typer.BadParameter("no bytes; write some in hexadecimal, such as 'c1 09'")
    if len(data) > MOST_BYTES:
        raise typer.BadParameter(f"{len(data)} bytes are too many to show; at most {MOST_BYTES}")
    return data


def _given(words: list[str]) -> str:
    if words and words != ["-"]:
        return " ".join(words)
    if not words and sys.stdin.isatty():
        raise typer.BadParameter("no bytes; write them in hexadecimal, or pipe them in")
    return sys.stdin.read(8 * MOST_BYTES)


def _dissect(data: bytes, form: str) -> Dissection:
    from zenlake.wire.dissector.dissect import dissect, dissect_packet

    if form == "2018":
        from zenlake.xrce.declared import PAGE

        return dissect_packet(data, PAGE)
    return dissect(data, form)


def _print_in_colour(dissection: Dissection) -> None:
    from rich.console import Console
    from rich.text import Text

    from zenlake.wire.dissector.text import ending, heading, table

    # Where no colours are wanted, nothing else that commands a terminal is either.
    plain = bool(os.environ.get("NO_COLOR"))
    console = Console(highlight=False, soft_wrap=True, color_system=None if plain else "auto")
    for notice in heading(dissection):
        console.print(Text(notice, "dim"))
    console.print()
    for at, octets, branch, name, value, meaning, kind in table(dissection):
        style = STYLES.get(kind, "")
        line = Text()
        line.append(f"{at}  ", "dim")
        line.append(octets, style if kind in ("bits", "broken", "head") else "cyan")
        line.append(f"  {branch}", "dim")
        line.append(name, style)
        line.append(f"  {value}", style if kind == "head" else "green")
        line.append(f"  {meaning}", style if kind == "head" else "")
        line.rstrip()
        console.print(line)
    if dissection.broken is not None and dissection.nodes:
        console.print()
    for notice in ending(dissection):
        console.print(Text(notice, "bold red"))


def _cut(word: str) -> str:
    return word if len(word) <= 40 else word[:39] + "…"
