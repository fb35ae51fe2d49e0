"""Reads the configuration of a lake, JSON5, and refuses what no lake could follow.

A table's decoder is looked up here, so that a mistake is told before the first sample comes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from zenlake.config.json5 import Unreadable, read_json5
from zenlake.config.nearest import nearest
from zenlake.errors import ConfigError, KeyExprError
from zenlake.keys import KeyExpr, KeyFormat
from zenlake.lake.decode.formats.flatbuffer import demand_schema
from zenlake.lake.decode.formats.protocol_buffers import demand_type
from zenlake.lake.decode.formats.serialized import python_type
from zenlake.lake.decode.registry import batch_decoder_named, decoder_named
from zenlake.lake.decode.ros2_tables import DECODER as ROS2_DECODER
from zenlake.lake.model.config import FIXED, LakeConfig, Retention, Ros2Config, seconds_of
from zenlake.lake.model.row_access import RowAccess
from zenlake.lake.model.typed_table import RESERVED, ROS2_PARTS, TypedTable
from zenlake.lake.model.value_types import KINDS, column_name
from zenlake.ros2.definitions import DISTRIBUTIONS

__all__ = ["read_config", "read_table_entry"]

CONFIGURED: Final = "configured"

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_SHORT: Final = re.compile(r"\$\{([^:}#]+)\}")
_TABLE_KEYS: Final = (
    "format", "topic", "encoding", "decoder", "type", "columns", "rename", "drop", "comment",
    "comments",
)  # fmt: skip
_KEYS: Final = (
    "tables", "retain", "latest", "gaps", "batch", "compact", "path", "journal", "row_access",
    "ros2", "history", "iceberg", "rollups", "network", "families", "late",
    "pipelines",
)  # fmt: skip


def read_config(text: str, source: str = "the configuration") -> LakeConfig:
    """The configuration that JSON5 text says; the section `lake` of a larger file will do."""
    try:
        plain: Any = read_json5(text).plain()
    except Unreadable as error:
        line = text.count("\n", 0, error.offset) + 1
        raise ConfigError(f"{source}, line {line}: {error.message}") from error
    if isinstance(plain, dict) and isinstance(plain.get("lake"), dict):
        plain = plain["lake"]
    root = _object(plain, source)
    if "views" in root:
        # Refused and not ignored: what restricts access must not be lost unseen.
        raise ConfigError(
            f"{source}: 'views' is called 'row_access' now; rename it (a view is what "
            "`zenlake lake view` makes)"
        )
    _check(root, _KEYS, source)
    latest = _object(root.get("latest", {}), "latest")
    _check(latest, ("buckets", "remember"), "latest")
    gaps = _object(root.get("gaps", {}), "gaps")
    _check(gaps, ("every",), "gaps")
    batch = _object(root.get("batch", {}), "batch")
    _check(batch, ("rows", "bytes", "task_rows", "task_bytes"), "batch")
    compact = _object(root.get("compact", {}), "compact")
    _check(compact, ("files", "bytes", "vacuum_age"), "compact")
    plain_default = LakeConfig()
    return LakeConfig(
        families=_families(root),
        path=_text(root.get("path"), "path"),
        journal=_text(root.get("journal"), "journal"),
        tables=tuple(
            read_table_entry(name, _object(given, f"tables/{name}"))
            for name, given in _tables(root).items()
        ),
        retain=tuple(_retention(given, n) for n, given in enumerate(_list(root.get("retain", [])))),
        row_access={
            name: _row_access(name, _object(given, f"row_access/{name}"))
            for name, given in _object(root.get("row_access", {}), "row_access").items()
        },
        buckets=_positive(latest.get("buckets", plain_default.buckets), "latest/buckets", 4096),
        remember=seconds_of(latest.get("remember", plain_default.remember), "latest/remember"),
        gaps_every=seconds_of(gaps.get("every", plain_default.gaps_every), "gaps/every"),
        batch_rows=_positive(batch.get("rows", plain_default.batch_rows), "batch/rows"),
        batch_bytes=_positive(batch.get("bytes", plain_default.batch_bytes), "batch/bytes"),
        task_bytes=_positive(batch.get("task_bytes", plain_default.task_bytes), "batch/task_bytes"),
        task_rows=_positive(batch.get("task_rows", plain_default.task_rows), "batch/task_rows"),
        compact_files=_positive(compact.get("files", plain_default.compact_files), "compact/files"),
        compact_bytes=_positive(compact.get("bytes", plain_default.compact_bytes), "compact/bytes"),
        vacuum_age=seconds_of(
            compact.get("vacuum_age", plain_default.vacuum_age), "compact/vacuum_age"
        ),
        ros2=_ros2(_object(root.get("ros2", {}), "ros2")),
        late=seconds_of(root.get("late", plain_default.late), "late"),
        history=seconds_of(root.get("history", plain_default.history), "history"),
        iceberg=_yes_or_no(root.get("iceberg", False), "iceberg"),
        rollups=_every(root.get("rollups", False), "rollups"),
        pipelines=_text(root.get("pipelines"), "pipelines"),
        network=_every(root.get("network", False), "network", "keep"),
        network_keep=_kept(root.get("network"), plain_default.network_keep),
    )


def _tables(root: Mapping[str, Any]) -> dict[str, Any]:
    given = root.get("tables", {})
    if isinstance(given, str) and given != CONFIGURED:
        raise ConfigError(
            f"tables: '{given}' is neither an object nor \"{CONFIGURED}\", which lets no tables "
            "appear by themselves"
        )
    return {} if given == CONFIGURED else _object(given, "tables")


def _families(root: Mapping[str, Any]) -> bool:
    """Return False if the configuration lets no tables appear by themselves."""
    return root.get("tables") != CONFIGURED and _yes_or_no(root.get("families", True), "families")


def _every(given: Any, where: str, *more: str) -> float | None:
    """The interval of something that is on or off, or has one: `{every: "10s"}`."""
    if isinstance(given, bool):
        return 10.0 if given else None
    _check(_object(given, where), ("every", *more), where)
    return seconds_of(given.get("every", 10.0), f"{where}/every")


def _kept(given: Any, default: float) -> float:
    return (
        seconds_of(given.get("keep", default), "network/keep")
        if isinstance(given, dict)
        else default
    )


def _ros2(given: Mapping[str, Any]) -> Ros2Config:
    _check(given, ("tables", "distribution", "folders"), "ros2")
    tables = _yes_or_no(given.get("tables", True), "ros2/tables")
    folders = given.get("folders", [])
    if not isinstance(folders, list) or not all(isinstance(one, str) for one in folders):
        raise ConfigError(f"ros2/folders: {folders!r} is not a list of folders")
    distribution = given.get("distribution", "humble")
    if distribution not in DISTRIBUTIONS:
        known = ", ".join(DISTRIBUTIONS)
        raise ConfigError(f"ros2/distribution: {distribution!r} is not one of {known}")
    return Ros2Config(tables, distribution, tuple(folders))


def read_table_entry(name: str, given: Mapping[str, Any]) -> TypedTable:
    """Return the typed table that an entry of `tables` describes; raises `ConfigError`."""
    where = f"tables/{name}"
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{where}: a table's name has lower-case letters, digits and _")
    if name in FIXED:
        raise ConfigError(f"{where}: every lake has a table '{name}' already; choose another name")
    _check(given, _TABLE_KEYS, where)
    topic = _text(given.get("topic"), f"{where}/topic")
    shape = _text(given.get("format"), f"{where}/format")
    if (shape is None) == (topic is None):
        raise ConfigError(
            f"{where}: say which keys it has, by format: 'robot/${{id}}/pose', or which topics of "
            "ROS 2, by topic: '/${robot}/odom'"
        )
    if shape is None:
        shape = (topic or "").strip("/")
    shape = _SHORT.sub(r"${\1:*}", shape)
    try:
        names = KeyFormat(shape).names
    except KeyExprError as error:
        raise ConfigError(f"{where}/format: {error}") from error
    columns = _object(given.get("columns", {}), f"{where}/columns")
    taken = {name.lower() for name in (*RESERVED, *(ROS2_PARTS if topic else ()))}
    for part in names:
        if column_name(part).lower() in taken:
            raise ConfigError(f"{where}/format: every table has a column '{part}'; rename the part")
        taken.add(column_name(part).lower())
    for column, kind in columns.items():
        if kind not in KINDS:
            raise ConfigError(
                f"{where}/columns/{column}: {kind!r} is not one of {', '.join(KINDS)}"
            )
        if column_name(column) != column or column.lower() in taken:
            raise ConfigError(f"{where}/columns/{column}: not a free name for a column")
        taken.add(column.lower())
    rename = _object(given.get("rename", {}), f"{where}/rename")
    for old, new in rename.items():
        if not isinstance(new, str) or column_name(new) != new:
            raise ConfigError(f"{where}/rename/{old}: {new!r} is not a name for a column")
        if new.lower() in taken - {one.lower() for one in columns}:
            raise ConfigError(f"{where}/rename/{old}: there is a column '{new}' already")
    if len({str(new).lower() for new in rename.values()}) < len(rename):
        raise ConfigError(f"{where}/rename: two columns cannot get one name")
    drop = given.get("drop", [])
    if not isinstance(drop, list) or not all(isinstance(one, str) for one in drop):
        raise ConfigError(f"{where}/drop: {drop!r} is not a list of names; write ['speed']")
    for gone in (*drop, *rename):
        if gone in columns:
            raise ConfigError(f"{where}/columns/{gone}: it is renamed or dropped; say its new name")
    decoder = _text(given.get("decoder"), f"{where}/decoder")
    if decoder is None and topic is not None:
        decoder = ROS2_DECODER
    if decoder is not None:
        if batch_decoder_named(decoder) is None:
            decoder_named(decoder)
    elif given.get("type") is not None:
        _demand_type(given["type"], f"{where}/type")
    return TypedTable(
        name=name,
        format=shape,
        encoding=_text(given.get("encoding"), f"{where}/encoding"),
        decoder=decoder,
        type=given.get("type"),
        columns=dict(columns),
        ros2=topic is not None,
        rename=dict(rename),
        drop=frozenset(drop),
        comment=_text(given.get("comment"), f"{where}/comment") or "",
        comments={
            column: _text(text, f"{where}/comments/{column}") or ""
            for column, text in _object(given.get("comments", {}), f"{where}/comments").items()
        },
    )


def _demand_type(given: Any, where: str) -> None:
    """Refuse a `type` that no decoder of ours reads."""
    if isinstance(given, dict) and "descriptors" in given:
        demand_type(given, where)
    elif isinstance(given, dict) and "bfbs" in given:
        demand_schema(given, where)
    elif not isinstance(given, list):  # else the header of CSV
        python_type(given)


def _retention(given: Any, place: int) -> Retention:
    where = f"retain/{place}"
    rule = _object(given, where)
    _check(rule, ("keys", "age"), where)
    if "age" not in rule:
        raise ConfigError(f"{where}: say how long: age: '7d'")
    try:
        keys = str(KeyExpr.autocanonize(str(rule.get("keys", "**"))))
    except KeyExprError as error:
        raise ConfigError(f"{where}/keys: {error}") from error
    return Retention(keys, seconds_of(rule["age"], f"{where}/age"))


def _row_access(name: str, given: Mapping[str, Any]) -> RowAccess:
    where = f"row_access/{name}"
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{where}: its name has lower-case letters, digits and _")
    _check(given, ("keys", "but"), where)
    if "keys" not in given:
        raise ConfigError(f"{where}: say which keys it shows: keys: ['robot/*/pose']")
    but = _exprs(given.get("but", []), f"{where}/but")
    return RowAccess(_exprs(given["keys"], f"{where}/keys"), but)


def _exprs(given: Any, where: str) -> tuple[str, ...]:
    if not isinstance(given, list):
        raise ConfigError(f"{where}: {given!r} is not a list; write ['robot/**']")
    try:
        return tuple(str(KeyExpr.autocanonize(str(each))) for each in given)
    except KeyExprError as error:
        raise ConfigError(f"{where}: {error}") from error


def _check(given: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for name in given:
        if name not in known:
            near = nearest(name, known)
            advice = f"; did you mean '{near}'?" if near else f"; known are {', '.join(known)}"
            raise ConfigError(f"{where}: unknown key '{name}'{advice}")


def _object(given: Any, where: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ConfigError(f"{where}: {given!r} is not an object; write {{…}}")
    return given


def _list(given: Any) -> list[Any]:
    if not isinstance(given, list):
        raise ConfigError(f"retain: {given!r} is not a list; write [{{keys: …, age: …}}]")
    return given


def _text(given: Any, where: str) -> str | None:
    if given is not None and not isinstance(given, str):
        raise ConfigError(f"{where}: {given!r} is not text")
    return given


def _yes_or_no(given: Any, where: str) -> bool:
    if not isinstance(given, bool):
        raise ConfigError(f"{where}: {given!r} is not true or false")
    return given


def _positive(given: Any, where: str, most: int = 1 << 40) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= most:
        raise ConfigError(f"{where}: {given!r} is not a whole number from 1 to {most}")
    return given
