"""ROS 2 messages: CDR, read by the definition whose hash stands in the key.

The fields of a message are the columns of its table; messages inside are structs, arrays lists.
Some types are given in the form that questions are asked in (`ros2_shapes`). Beside them stand
what rmw_zenoh attaches to each sample, and who sent it, where the graph has told:

    sequence_number · source_time · gid · node · qos

`type` of the table may bring what is not installed where tasks run: `definitions`, descriptions
of types as JSON texts, `nodes`, a pair of node and QoS for each gid, and `bridged`, a pair of type
and QoS for each key that a ros2dds bridge brings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenlake.errors import DecodeError
from zenlake.journal.schema import INSTANT
from zenlake.lake.decode.formats.ros2_shapes import shaped
from zenlake.lake.model.decoder import DecodedRows, PayloadBatch, Reason, Undecodable
from zenlake.ros2.attachment import read_attachment
from zenlake.ros2.bridge import bridged_keys
from zenlake.ros2.cdr import CdrDecoder
from zenlake.ros2.definitions import Definitions
from zenlake.ros2.description import read_description
from zenlake.ros2.names import DataKey, parse_key

__all__ = ["Ros2"]

_NOTHING: Final = np.empty(0, np.int64)


class Ros2:
    """Reads what rmw_zenoh publishes; found by the keys, for it leaves the encoding alone."""

    encodings = ("application/cdr",)

    def decode_batch(self, batch: PayloadBatch) -> Sequence[DecodedRows]:
        """All samples, those of one type together."""
        options = batch.type if isinstance(batch.type, Mapping) else {}
        definitions = _given(tuple(options.get("definitions", ())), options.get("distribution"))
        nodes = options.get("nodes", {})
        bridged = bridged_keys(batch.type)
        decoded: list[DecodedRows] = []
        for key, places in _by_type(batch.keys, bridged).items():
            try:
                decoder = _decoder(definitions, key)
            except Undecodable as error:
                decoded.append(DecodedRows({}, _NOTHING, dict.fromkeys(places, error)))
                continue
            read = decoder.decode([batch.payloads[n] for n in places])
            at = np.array(places, np.int64)
            refused = {places[n]: Undecodable(why) for n, why in read.refused.items()}
            readable = at[read.places].tolist()
            senders = _senders([batch.attachments[n] for n in readable], nodes)
            if bridged:
                offers = [bridged.get(batch.keys[n], (None, None))[1] for n in readable]
                senders["qos"] = pc.coalesce(senders["qos"], pa.array(offers, pa.string()))
            columns, rows = shaped(decoder.plan.type, read.values)
            if rows is not None:
                senders = {name: column.take(pa.array(rows)) for name, column in senders.items()}
            kept = read.places if rows is None else read.places[rows]
            decoded.append(DecodedRows({**senders, **columns}, at[kept], refused))
        return decoded


def _by_type(
    keys: Sequence[str], bridged: Mapping[str, Sequence[str]]
) -> dict[DataKey | None, list[int]]:
    """The samples of each type, whatever their topics."""
    by_type: dict[DataKey | None, list[int]] = {}
    known: dict[str, DataKey | None] = {}
    for n, key in enumerate(keys):
        if key in bridged and key not in known:
            known[key] = DataKey(0, "/", bridged[key][0], None)
        elif key not in known:
            data = parse_key(key)
            known[key] = None if data is None else DataKey(0, "/", data.type, data.hash)
        by_type.setdefault(known[key], []).append(n)
    return by_type


@lru_cache(maxsize=16)
def _given(texts: tuple[str, ...], distribution: str | None) -> Definitions:
    definitions = Definitions(distribution) if distribution else Definitions()
    for text in texts:
        definitions.add(read_description(json.loads(text)))
    return definitions


def _decoder(definitions: Definitions, key: DataKey | None) -> CdrDecoder:
    if key is None:
        raise Undecodable(
            "the key is none of rmw_zenoh's, and no bridge told its type", Reason.DEFINITION
        )
    return _made(definitions, key.type, key.hash)


@lru_cache(maxsize=1024)
def _made(definitions: Definitions, type: str, hash: str | None) -> CdrDecoder:
    description = definitions.find(type, hash)
    if description is None:
        raise Undecodable(f"no definition of {type} for {hash or 'no hash'}", Reason.DEFINITION)
    try:
        return CdrDecoder(description)
    except DecodeError as error:
        raise Undecodable(str(error), Reason.DEFINITION) from error


def _senders(
    attachments: Sequence[bytes | None], nodes: Mapping[str, Sequence[str]]
) -> dict[str, pa.Array]:
    """Who sent each sample, and as what number."""
    read = [None if one is None else read_attachment(one) for one in attachments]
    gids = [None if one is None else one.gid.hex() for one in read]
    unknown: tuple[Any, Any] = (None, None)
    of = [unknown if gid is None else nodes.get(gid, unknown) for gid in gids]
    numbers = [None if one is None else one.sequence_number for one in read]
    times = [None if one is None else one.source_timestamp // 1000 for one in read]
    return {
        "sequence_number": pa.array(numbers, pa.int64()),
        "source_time": pa.array(times, pa.int64()).cast(INSTANT),
        "gid": pa.array(gids, pa.string()),
        "node": pa.array([one[0] for one in of], pa.string()),
        "qos": pa.array([one[1] for one in of], pa.string()),
    }
