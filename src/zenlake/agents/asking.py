"""Questions to the bus with answers that a program can reason about, each with its proof.

    agent = Agent(session)
    agent.get("robot/7/**")["rows"], agent.sql("SELECT …")["proof"]

Everything goes over the bus, as any Zenoh client would ask: SQL passes the lake's own gate, and
what a session may see is decided by access control where it connects.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, final

from zenlake.agents.proof import gaps, verdict
from zenlake.errors import LocalError, ZError
from zenlake.keys import KeyExpr, Selector
from zenlake.rest.samples import json_value

if TYPE_CHECKING:
    from zenlake.api.reply import Reply
    from zenlake.api.session import Session

__all__ = ["Agent"]

Answer = dict[str, Any]
ROWS: Final = 200
MOST_ROWS: Final = 10_000
MOST_BYTES: Final = 1 << 20
"""How much of the values an answer carries: a program that reads it has to read all of it."""


@final
class Agent:
    """Asks over one session."""

    def __init__(self, session: Session, *, timeout: float = 30.0) -> None:
        """`timeout` is how long an answer is waited for."""
        self._session = session
        self._timeout = timeout

    def keys(self, expression: str = "**", limit: int = ROWS) -> Answer:
        """The keys that have a value now, with encoding and time."""
        asked = KeyExpr(expression)
        rows, cut = self._rows(self._get(str(asked), ""), limit)
        for row in rows:
            del row["value"]
            row.pop("base64", None)
        return {"rows": rows, "proof": self._proof(str(asked), (str(asked),), cut)}

    def tables(self) -> Answer:
        """The tables of the lake with their columns."""
        tables = {}
        for reply in self._get("@lake/tables/**", ""):
            if reply.ok is not None:
                name = str(reply.ok.key_expr).rpartition("/")[2]
                tables[name] = json.loads(reply.ok.payload.to_bytes())
        if not tables:
            raise LocalError(NO_LAKE)
        return {"tables": tables, "proof": self._proof("@lake/tables/**", ("**",), None)}

    def get(self, selector: str, limit: int = ROWS) -> Answer:
        """The values that answer a selector."""
        asked = Selector(selector)
        expr = str(asked.key_expr)
        rows, cut = self._rows(self._get(expr, str(asked.parameters)), limit)
        return {"rows": rows, "proof": self._proof(selector, (expr,), cut)}

    def history(
        self, key: str, since: str, until: str = "", where: str = "", limit: int = ROWS
    ) -> Answer:
        """All samples under these keys in a span of time, in its order."""
        expr = str(KeyExpr(key))
        parameters = f"_time=[{since}..{until}]" + (f";_filter={where}" if where else "")
        if limit < MOST_ROWS:
            parameters += f";_limit={limit + 1}"
        rows, cut = self._rows(self._get(expr, parameters), limit)
        if not rows:
            self._demand_memory(expr)
        return {"rows": rows, "proof": self._proof(f"{expr}?{parameters}", (expr,), cut)}

    def as_of(self, key: str, instant: str, limit: int = ROWS) -> Answer:
        """The value that each key had at an instant."""
        expr = str(KeyExpr(key))
        parameters = f"_asof={instant}"
        rows, cut = self._rows(self._get(expr, parameters), limit)
        if not rows:
            self._demand_memory(expr)
        return {"rows": rows, "proof": self._proof(f"{expr}?{parameters}", (expr,), cut)}

    def sql(self, query: str, limit: int = ROWS) -> Answer:
        """The rows that an SQL question finds in the lake."""
        for reply in self._get("@lake/sql", "_as=json;_proof=true", query):
            if reply.ok is None:
                raise LocalError(_reason(reply))
            document = json.loads(reply.ok.payload.to_bytes())
            rows, read = document["rows"], document["proof"]
            held, cut = _cut(rows, limit)
            proof = self._proof("@lake/sql", tuple(read["keys"]), cut)
            proof["read"] = {
                "tables": read["tables"],
                "partitions": read["partitions"],
                "rows_behind": sum(p["journal_to"] - p["table_to"] for p in read["partitions"]),
            }
            return {"rows": held, "proof": proof}
        raise LocalError(NO_LAKE)

    def gaps(self, key: str = "**") -> Answer:
        """What is missing under these keys, in sentences."""
        expr = str(KeyExpr(key))
        ledgers = self._ledgers()
        return {"told": gaps(expr, ledgers), "proof": self._proof(expr, (expr,), None, ledgers)}

    def put(self, key: str, value: str, encoding: str = "application/json") -> Answer:
        """Publish a value."""
        self._session.put(key, value, encoding=encoding)
        return {"published": key}

    def delete(self, key: str) -> Answer:
        """Publish that a value is deleted."""
        self._session.delete(key)
        return {"deleted": key}

    # --- how ------------------------------------------------------------------------------------

    def _get(self, expr: str, parameters: str, payload: str | None = None) -> Iterable[Reply]:
        selector = f"{expr}?{parameters}" if parameters else expr
        return self._session.get(selector, payload=payload, timeout=self._timeout)

    def _rows(self, replies: Iterable[Reply], limit: int) -> tuple[list[Answer], str | None]:
        rows: list[Answer] = []
        errors: list[str] = []
        for reply in replies:
            if reply.ok is None:
                errors.append(_reason(reply))
            elif len(rows) <= min(limit, MOST_ROWS):
                rows.append(_row(reply))
        if errors and not rows:
            raise LocalError("; ".join(errors))
        return _cut(rows, limit)

    def _demand_memory(self, expr: str) -> None:
        """Nothing came: because nothing was, or because nobody remembers?"""
        if not self._ledgers():
            raise LocalError(
                f"nobody on this bus remembers the past of '{expr}': `zenlake up` records "
                "everything that is published, from when it is started"
            )

    def _ledgers(self) -> list[dict[str, Any]]:
        ledgers = []
        try:
            for reply in self._get("@journal/*/ledger", ""):
                if reply.ok is not None:
                    ledgers.append(json.loads(reply.ok.payload.to_bytes()))
        except (ZError, ValueError) as error:
            raise LocalError(f"the ledger could not be read: {error}") from error
        return ledgers

    def _proof(
        self,
        asked: str,
        exprs: tuple[str, ...],
        cut: str | None,
        ledgers: list[dict[str, Any]] | None = None,
    ) -> Answer:
        proven = verdict(exprs, self._ledgers() if ledgers is None else ledgers)
        return {"asked": asked, **proven, "cut": cut}


NO_LAKE: Final = "no lake answers on this bus: `zenlake up` starts one"


def _row(reply: Reply) -> Answer:
    sample = reply.ok
    assert sample is not None
    encoding = str(sample.encoding)
    stamp = sample.timestamp
    return {
        "key": str(sample.key_expr),
        **readable(sample.payload.to_bytes(), encoding),
        "encoding": encoding,
        # As `as_of` and `look_back` take it.
        "time": None if stamp is None else f"{stamp.get_time():%Y-%m-%dT%H:%M:%S.%fZ}",
    }


def _cut(rows: list[Answer], limit: int) -> tuple[list[Answer], str | None]:
    """As many rows as may be told, and a word about the others."""
    kept: list[Answer] = []
    size = 0
    for row in rows[: min(limit, MOST_ROWS)]:
        size += len(json.dumps(row, default=str))
        if size > MOST_BYTES:
            break
        kept.append(row)
    if len(kept) == len(rows):
        return kept, None
    return kept, f"only the first {len(kept)} rows are here; ask for less, or with a higher limit"


def _reason(reply: Reply) -> str:
    assert reply.err is not None
    data = reply.err.payload.to_bytes()
    try:
        return str(json.loads(data)["error"])
    except (ValueError, KeyError, TypeError):
        return data.decode("utf-8", "replace")


def readable(payload: bytes, encoding: str) -> dict[str, object]:
    """A payload as a program that reads words wants it, and whether it is in base64.

    HTTP shows bytes as base64 whatever they are, as Eclipse's plugin does. Most bytes that nobody
    says anything about are text.
    """
    value = json_value(payload, encoding)
    if not isinstance(value, str) or value != b64encode(payload).decode("ascii"):
        return {"value": value}
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return {"value": value, "base64": True}
    if all(letter.isprintable() or letter.isspace() for letter in text):
        return {"value": text}
    return {"value": value, "base64": True}
