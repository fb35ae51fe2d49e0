"""Where descriptions of types come from, each checked against the hash that a key names.

The ladder, first hit wins: those that were learnt or given, the message packages of every
distribution that `rosbags` knows, and packages of ROS that are installed here. A type without a
hash (Humble, the ros2dds bridge) is looked up by its name in one distribution.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from zenlake.errors import ConfigError, DecodeError
from zenlake.ros2.description import (
    BASE_IDS,
    BOUNDED,
    BOUNDED_STRING,
    EMPTY_MEMBER,
    FIXED,
    NESTED,
    UNBOUNDED,
    FieldType,
    Individual,
    MessageField,
    TypeDescription,
    read_description,
)

__all__ = ["DISTRIBUTIONS", "Definitions", "described_by_text"]

DISTRIBUTIONS: Final = ("lyrical", "kilted", "jazzy", "iron", "humble")
"""Those whose packages are known, newest first."""

MOST_LEARNT: Final = 10_000
MOST_TEXT: Final = 1 << 20
# Node types of rosbags' own trees.
_NAME, _ARRAY, _SEQUENCE = 2, 3, 4


class Definitions:
    """Descriptions by hash and by name."""

    def __init__(self, distribution: str = "humble") -> None:
        """`distribution`: where types without a hash are looked up."""
        if distribution not in DISTRIBUTIONS:
            known = ", ".join(DISTRIBUTIONS)
            raise ConfigError(f"'{distribution}' is no known distribution; write one of {known}")
        self.distribution = distribution
        self._by_hash: dict[str, TypeDescription] = {}
        self._by_name: dict[str, TypeDescription] = {}

    def __iter__(self) -> Iterator[TypeDescription]:
        """Those that were learnt or given."""
        return iter(self._by_hash.values())

    def add(self, description: TypeDescription) -> bool:
        """Remember a description; False if it was known."""
        hash = description.hash
        if hash in self._by_hash:
            return False
        if len(self._by_hash) >= MOST_LEARNT:
            raise DecodeError(f"more than {MOST_LEARNT} types were learnt; {hash} is not kept")
        self._by_hash[hash] = description
        self._by_name[description.main.name] = description
        return True

    def add_folder(self, folder: str | Path) -> int:
        """Read every `.msg` below a folder (`<package>/msg/<Name>.msg`); gives how many.

        The schemas of MCAP files that lie there count too.
        """
        fields: dict[str, Any] = {}
        root = Path(folder)
        recorded = sum(self.add(one) for path in root.rglob("*.mcap") for one in _schemas(path))
        for path in sorted(root.rglob("*.msg")):
            package = path.parent.parent.name if path.parent.name == "msg" else path.parent.name
            name = f"{package}/msg/{path.stem}"
            fields.update(_parsed(path.read_text(), name))
        if not fields and not recorded:
            raise ConfigError(f"there is no .msg file below {root}; name a folder with packages")
        known = dict(_distribution(DISTRIBUTIONS[0])) | fields
        return recorded + sum(self.add(_description(known, name)) for name in fields)

    def find(self, type: str, hash: str | None) -> TypeDescription | None:
        """The description of a type, or None if no source has it."""
        if hash is None:
            return self._by_name.get(type) or _of(self.distribution, type)
        known = self._by_hash.get(hash)
        return known if known is not None else _shipped(type, hash)


def described_by_text(text: str, type: str) -> TypeDescription:
    """The description that a `.msg` text gives; types that it refers to may follow in it.

    That is the form of schemas in MCAP files: further types after a line of `=`, each with a
    line `MSG: package/Name`.
    """
    fields = _parsed(text, type)
    return _description(dict(_distribution(DISTRIBUTIONS[0])) | fields, type)


def _schemas(path: Path) -> Iterator[TypeDescription]:
    """The types that an MCAP file describes; schemas that are no text of `.msg` are none."""
    try:
        from mcap.exceptions import McapError
        from mcap.reader import make_reader
    except ImportError as error:
        raise ConfigError(f"{path} needs a library: pip install 'zenlake[mcap]'") from error
    with path.open("rb") as data:
        try:
            summary = make_reader(data).get_summary()
        except (McapError, struct.error) as error:
            raise ConfigError(f"{path} is no MCAP file: {error}") from error
    for schema in [] if summary is None else summary.schemas.values():
        if schema.encoding == "ros2msg":
            yield described_by_text(schema.data.decode("utf-8", "replace"), schema.name)


def _parsed(text: str, type: str) -> dict[str, Any]:
    from rosbags.typesys import get_types_from_msg

    if len(text) > MOST_TEXT:
        raise DecodeError(f"the definition of {type} is longer than {MOST_TEXT} characters")
    try:
        return dict(get_types_from_msg(text, type))
    except Exception as error:  # its grammar raises errors of its own
        raise DecodeError(f"the definition of {type} cannot be read: {error}") from error


@lru_cache(maxsize=4096)
def _shipped(type: str, hash: str) -> TypeDescription | None:
    for distribution in DISTRIBUTIONS:
        description = _of(distribution, type)
        if description is not None and description.hash == hash:
            return description
    installed = _installed(type)
    return installed if installed is not None and installed.hash == hash else None


@lru_cache(maxsize=4096)
def _of(distribution: str, type: str) -> TypeDescription | None:
    fields = _distribution(distribution)
    return _description(fields, type) if type in fields else None


@lru_cache(maxsize=8)
def _distribution(name: str) -> Mapping[str, Any]:
    try:
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        return {}
    return get_typestore(Stores(f"ros2_{name}")).fielddefs


def _installed(type: str) -> TypeDescription | None:
    """A type of a package of ROS that is installed here, from a wheel or in a workspace."""
    package, kind, name = type.split("/")
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    for root in (sys.prefix, *filter(None, prefixes)):
        path = Path(root, "share", package, kind, f"{name}.json")
        try:
            return read_description(json.loads(path.read_text())["type_description_msg"])
        except (OSError, ValueError, KeyError, DecodeError):
            continue
    return None


def _description(known: Mapping[str, Any], type: str) -> TypeDescription:
    """The description of a type of rosbags' tables."""
    main = _individual(known, type)
    referenced: dict[str, Individual] = {}
    waiting = [main]
    while waiting:
        for field in waiting.pop().fields:
            inner = field.type.nested
            if inner and inner not in referenced:
                referenced[inner] = _individual(known, inner)
                waiting.append(referenced[inner])
    ordered = sorted(referenced.values(), key=lambda one: one.name)
    return TypeDescription(main, tuple(ordered))


def _individual(known: Mapping[str, Any], type: str) -> Individual:
    if type not in known:
        raise DecodeError(f"{type} is not described; add its .msg file")
    fields = tuple(MessageField(name, _field_type(parsed)) for name, parsed in known[type][1])
    return Individual(type, fields or (MessageField(EMPTY_MEMBER, FieldType(BASE_IDS["uint8"])),))


def _field_type(parsed: Any) -> FieldType:
    more = capacity = 0
    if parsed[0] == _ARRAY:
        more, capacity = FIXED, parsed[1][1]
        parsed = parsed[1][0]
    elif parsed[0] == _SEQUENCE:
        capacity = parsed[1][1]
        more = BOUNDED if capacity else UNBOUNDED
        parsed = parsed[1][0]
    if parsed[0] == _NAME:
        return FieldType(more + NESTED, capacity, 0, parsed[1])
    name, bound = parsed[1]
    if name == "string" and bound:
        return FieldType(more + BOUNDED_STRING, capacity, bound)
    if name not in BASE_IDS:
        raise DecodeError(f"'{name}' is no type of a field")
    return FieldType(more + BASE_IDS[name], capacity)
