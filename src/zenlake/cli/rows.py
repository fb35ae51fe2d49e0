"""How rows of a journal are printed."""

from __future__ import annotations

from typing import Any

from zenlake.cli.show import aside, paint, payload_facts, readable, size_of, unpacked
from zenlake.printable import printable
from zenlake.recorded.encoding import recorded_text
from zenlake.recorded.words import KINDS, source_text

ORIGINS = ("heard", "healed", "imported")


def row_facts(row: dict[str, Any]) -> dict[str, object]:
    """A row for programs."""
    facts: dict[str, object] = {
        "offset": row["offset"],
        "key": row["key"],
        "kind": KINDS[row["kind"]],
    }
    facts |= payload_facts(row["value"])
    facts["size"] = len(row["value"])
    facts["encoding"] = _encoding(row)
    facts["time"] = row["time"].isoformat()
    facts["hlc"] = row["hlc"]
    facts["stamped"] = row["stamped"]
    if row["attachment"] is not None:
        facts |= payload_facts(row["attachment"], "attachment")
    if row["source_zid"] is not None:
        facts["source"] = source_text(row["source_zid"], row["source_eid"])
        facts["source_sn"] = row["source_sn"]
    facts["received"] = row["received"].isoformat()
    facts["origin"] = ORIGINS[row["origin"]]
    return facts


def row_line(row: dict[str, Any]) -> str:
    """A row for people."""
    kind = KINDS[row["kind"]]
    key = paint(printable(row["key"]), "cyan")
    line = f"{row['offset']:>10} {paint(kind, 'red' if row['kind'] else 'green')} {key}"
    about = [] if row["kind"] else [size_of(row["value"])]
    if not row["kind"]:
        encoding = printable(_encoding(row))
        plain = unpacked(row["value"], encoding)
        line += f": {readable(row['value'] if plain is None else plain)}"
        about += [] if encoding == "zenoh/bytes" else [encoding]
    about.append(row["time"].strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
    if row["origin"]:
        about.append(ORIGINS[row["origin"]])
    return line + aside(about)


def _encoding(row: dict[str, Any]) -> str:
    return recorded_text(row["encoding_id"], row["encoding_schema"])
