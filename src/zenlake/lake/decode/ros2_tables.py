"""Tables for topics of ROS 2 that no configuration names: which there are, and what reads them.

A topic that comes along gets a table of its own, named after it: `/tf` is `tf`, and
`/robot1/odom` is `robot1_odom`. What the table is for is written into its description, so a lake
that is opened again finds it. Types that were learnt from nodes, and who they are, are kept
beside the tables in `.ros2`.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, final

import pyarrow as pa

from zenlake.errors import DecodeError, KeyExprError, LocalError, ZError
from zenlake.keys import KeyFormat
from zenlake.lake.model.config import Ros2Config
from zenlake.lake.model.typed_table import TypedTable
from zenlake.lake.table.delta import Table
from zenlake.lake.table.location import LakeLocation
from zenlake.ros2.bridge import BridgedTopic
from zenlake.ros2.definitions import Definitions
from zenlake.ros2.description import TypeDescription, read_description

__all__ = [
    "DECODER",
    "LearntTypes",
    "Ros2Tables",
    "configured_types",
    "demand_own",
    "table_name",
]

log = logging.getLogger("zenlake.lake")

DECODER: Final = "zenlake.lake.decode.formats.ros2:Ros2"
DESCRIBED: Final = "ROS 2 topic "
FOLDER: Final = ".ros2"
MOST_TABLES: Final = 500
MOST_NODES: Final = 20_000


def table_name(topic: str, taken: Collection[str]) -> str:
    """The name of a topic's table, which no other has."""
    plain = re.sub(r"\W", "_", topic.strip("/").lower(), flags=re.ASCII)[:56] or "root"
    name = plain if plain[0].isalpha() and plain not in taken else f"ros_{plain}"
    number = 2
    while name in taken:
        name = f"ros_{plain}_{number}"
        number += 1
    return name


@final
class Ros2Tables:
    """The tables of topics, those that were configured and those that came along."""

    def __init__(self, place: LakeLocation, given: Iterable[TypedTable]) -> None:
        """`given`: all typed tables of the configuration."""
        self._place = place
        self._given = tuple(given)
        self._formats = [KeyFormat(one.format) for one in self._given if one.ros2]
        self.found: dict[str, TypedTable] = {}
        """Tables of topics by their names, without those of the configuration."""
        self._topics: set[str] = set()
        self.full = False
        """Whether topics came that no table was made for, because there are too many."""
        taken = {one.name for one in self._given}
        for name in place.folders():
            if name not in taken:
                with suppress(ZError):  # a damaged table tells so where it is opened
                    self._remember(name)

    def _remember(self, name: str) -> None:
        table = Table.open(self._place, name)
        if table is not None and table.described.startswith(DESCRIBED):
            self._add(name, table.described.removeprefix(DESCRIBED))

    def _add(self, name: str, topic: str) -> TypedTable:
        self._topics.add(topic)
        spec = TypedTable(name, topic.strip("/"), decoder=DECODER, ros2=True)
        self.found[name] = spec
        return spec

    def met(self, topics: Iterable[str], taken: Collection[str]) -> list[TypedTable]:
        """Topics that were heard; gives the tables that they need and that are not there yet."""
        new: list[TypedTable] = []
        for topic in sorted(set(topics) - self._topics):
            if any(_is_of(form, topic) for form in self._formats):
                self._topics.add(topic)
                continue
            if len(self.found) >= MOST_TABLES:
                self.full = True
                break
            given = (one.name for one in self._given)
            name = table_name(topic, {*taken, *self.found, *given})
            new.append(self._add(name, topic))
        return new

    @staticmethod
    def described(spec: TypedTable) -> str:
        """What the description of a topic's table says."""
        return (
            f"{DESCRIBED}/{spec.format}" if spec.ros2 and not KeyFormat(spec.format).names else ""
        )


def demand_own(table: Table, described: str) -> None:
    """Refuse to fill the table of a topic with anything else."""
    if table.described.startswith(DESCRIBED) and table.described != described:
        raise LocalError(
            f"the lake made the table '{table.name}' for {table.described}; give the one of the "
            f"configuration another name, or take the folder {table.place.uri} away"
        )


def _is_of(form: KeyFormat, topic: str) -> bool:
    try:
        form.parse(topic.strip("/"))
    except KeyExprError:
        return False
    return True


def configured_types(config: Ros2Config) -> Definitions:
    """Return the types that the folders of a configuration describe.

    Those of installed packages are found without.
    """
    definitions = Definitions(config.distribution)
    for folder in config.folders:
        definitions.add_folder(folder)
    return definitions


@final
class LearntTypes:
    """Types and nodes that were learnt from the network, and survive a restart."""

    def __init__(self, place: LakeLocation, definitions: Definitions | None = None) -> None:
        """Begin with the types and nodes that earlier runs have learnt."""
        self._place = place / FOLDER
        self._lock = threading.Lock()
        self.definitions = definitions or Definitions()
        self.nodes: dict[str, tuple[str, str]] = {}
        """Node and QoS by the gid of an endpoint."""
        self.bridged: dict[str, tuple[str, str]] = {}
        """Type and QoS by the key of a topic that a ros2dds bridge brings."""
        for text in self._texts():
            with suppress(DecodeError, ValueError):
                self.definitions.add(read_description(json.loads(text)))
        with suppress(ValueError, TypeError):
            nodes: Mapping[str, Any] = json.loads(self._read("nodes.json") or "{}")
            self.nodes.update((gid, (str(one[0]), str(one[1]))) for gid, one in nodes.items())
        with suppress(ValueError, TypeError):
            topics: Mapping[str, Any] = json.loads(self._read("bridged.json") or "{}")
            self.bridged.update((key, (str(one[0]), str(one[1]))) for key, one in topics.items())

    def learn(self, description: TypeDescription) -> bool:
        """Keep a type; False if it was known."""
        with self._lock:
            if not self.definitions.add(description):
                return False
        self._write(f"{description.hash}.json", description.to_json())
        return True

    def name(self, gid: str, node: str, qos: str) -> None:
        """Keep who an endpoint is; the oldest are forgotten first."""
        with self._lock:
            self.nodes.pop(gid, None)
            self.nodes[gid] = (node, qos)
            while len(self.nodes) > MOST_NODES:
                del self.nodes[next(iter(self.nodes))]

    def bridge(self, topic: BridgedTopic) -> None:
        """Keep what a bridge says of a topic; the oldest are forgotten first."""
        entry = (topic.type, str(topic.qos))
        with self._lock:
            if self.bridged.get(topic.key) == entry:
                return
            self.bridged.pop(topic.key, None)
            self.bridged[topic.key] = entry
            while len(self.bridged) > MOST_NODES:
                del self.bridged[next(iter(self.bridged))]
            text = json.dumps(self.bridged)
        self._write("bridged.json", text)

    def bridged_topics(self) -> set[str]:
        """The topics that bridges bring."""
        with self._lock:
            return {f"/{key}" for key in self.bridged}

    def save(self) -> None:
        """Keep the nodes for the next run."""
        with self._lock:
            text = json.dumps(self.nodes)
        self._write("nodes.json", text)

    def with_types(self, spec: TypedTable) -> TypedTable:
        """A table that brings what is known here to where it is decoded."""
        if not spec.ros2:
            return spec
        given = dict(spec.type) if isinstance(spec.type, Mapping) else {}
        with self._lock:
            texts, nodes = [one.to_json() for one in self.definitions], dict(self.nodes)
            bridged = dict(self.bridged)
        form = KeyFormat(spec.format)
        mine = {key: entry for key, entry in bridged.items() if _is_of(form, key)}
        known = {"definitions": texts, "nodes": nodes, "bridged": mine}
        return replace(spec, type={**given, "distribution": self.definitions.distribution, **known})

    def _texts(self) -> Iterable[str]:
        for name, _, _ in self._place.files():
            if name.startswith("RIHS"):
                yield self._read(name)

    def _read(self, name: str) -> str:
        try:
            with self._place.filesystem.open_input_stream(self._place.path(name)) as file:
                return str(file.read().decode())
        except (OSError, UnicodeDecodeError):
            return ""

    def _write(self, name: str, text: str) -> None:
        try:
            self._place.make("")
            with self._place.filesystem.open_output_stream(self._place.path(name)) as file:
                file.write(text.encode())
        except (OSError, pa.ArrowException) as error:
            log.warning("what was learnt about ROS 2 cannot be kept: %s", error)
