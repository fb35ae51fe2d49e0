"""How a payload becomes columns: one small class for each way of writing values down.

A decoder turns the bytes of one sample into named fields; the lake makes columns of them. It is
found by the name of the sample's encoding (or by the one that the table's configuration says):

    class Csv:
        encodings = ("text/csv",)

        def decode(self, payload, schema, type):
            return dict(zip(schema.split(","), payload.decode().split(","), strict=True))

A decoder that reads many payloads faster at once than one by one has `decode_batch` beside
`decode`, or instead of it: it gives Arrow columns, whatever their types (`BatchDecoder`).

Those of other packages are found by entry points of the group `zenlake.decoders`, or are named
in the configuration of a table: `decoder: "package.module:Class"`. A decoder raises `Undecodable`
with a reason; whatever else it raises is taken for one too, so no payload can stop the stream.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from zenlake.errors import ConfigError, DecodeError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

__all__ = [
    "WHOLE",
    "BatchDecoder",
    "DecodedRows",
    "Decoder",
    "Fields",
    "PayloadBatch",
    "Reason",
    "Undecodable",
    "batch_decoder_named",
    "decoder_for",
    "decoder_named",
]

Fields = Mapping[str, object]
"""Values by name: bool, int, float, str, bytes, None, lists and mappings of these."""

WHOLE: Final = "value"
"""The field of a payload that is one value and names no fields."""

GROUP: Final = "zenlake.decoders"

_OURS: Final[Mapping[str, str]] = {
    "application/json": "zenlake.lake.decoders.json_text:Json",
    "text/json": "zenlake.lake.decoders.json_text:Json",
    "application/cbor": "zenlake.lake.decoders.cbor:Cbor",
    "text/properties": "zenlake.lake.decoders.properties:Properties",
    "application/properties": "zenlake.lake.decoders.properties:Properties",
    "zenoh/properties": "zenlake.lake.decoders.properties:Properties",
    "text/plain": "zenlake.lake.decoders.plain:Plain",
    "zenoh/string": "zenlake.lake.decoders.plain:Plain",
    "zenoh/bytes": "zenlake.lake.decoders.plain:Plain",
    "zenoh/serialized": "zenlake.lake.decoders.serialized:Serialized",
    "application/msgpack": "zenlake.lake.decoders.message_pack:MessagePack",
    "application/x-msgpack": "zenlake.lake.decoders.message_pack:MessagePack",
    "application/vnd.msgpack": "zenlake.lake.decoders.message_pack:MessagePack",
    "application/yaml": "zenlake.lake.decoders.yaml_text:Yaml",
    "text/yaml": "zenlake.lake.decoders.yaml_text:Yaml",
    "text/csv": "zenlake.lake.decoders.comma_separated:Csv",
    "application/protobuf": "zenlake.lake.decoders.protocol_buffers:Protobuf",
    "application/x-flatbuffers": "zenlake.lake.decoders.flatbuffer:FlatBuffer",
    "application/flatbuffers": "zenlake.lake.decoders.flatbuffer:FlatBuffer",
    "application/vnd.apache.arrow.stream": "zenlake.lake.decoders.arrow_ipc:ArrowIpc",
    "application/vnd.apache.arrow.file": "zenlake.lake.decoders.arrow_ipc:ArrowIpc",
    "image/png": "zenlake.lake.decoders.images:Image",
    "image/jpeg": "zenlake.lake.decoders.images:Image",
    "image/gif": "zenlake.lake.decoders.images:Image",
    "image/bmp": "zenlake.lake.decoders.images:Image",
    "image/webp": "zenlake.lake.decoders.images:Image",
}


class Reason(StrEnum):
    """Why a sample is in quarantine; all that there are."""

    ENCODING = "encoding"
    """No decoder reads payloads of this encoding."""
    PAYLOAD = "payload"
    """The bytes are not what the encoding says."""
    DECODER = "decoder"
    """The decoder failed."""
    TYPE = "type"
    """A field has another type than its column."""
    TEXT = "text"
    """A text is not Unicode: it has half of a surrogate pair."""
    RANGE = "range"
    """A number does not fit its column without loss."""
    NAME = "name"
    """Two fields come to one column."""
    COLUMNS = "columns"
    """There would be too many columns."""
    DEFINITION = "definition"
    """What the payload is made of is not known (yet)."""
    COLUMN = "column"
    """The column does not take the value, for a reason that has no error of its own."""


class Undecodable(DecodeError):
    """A payload that is not what its encoding says; the message tells the details."""

    def __init__(
        self, detail: str, reason: Reason = Reason.PAYLOAD, field: str | None = None
    ) -> None:
        """`field`: the one that it is about, if it is about one."""
        super().__init__(detail)
        self.reason = reason
        self.field = field


@runtime_checkable
class Decoder(Protocol):
    """Reads payloads of some encodings."""

    encodings: tuple[str, ...]
    """The names of the encodings it reads, without what stands after the `;`."""

    def decode(self, payload: bytes, schema: str, type: object) -> Fields:
        """The fields of one payload.

        `schema` is what the encoding says after its `;`, and `type` what the configuration of
        the table says under `type` (or None): bytes that do not describe themselves need it.
        """


@dataclass(frozen=True, slots=True)
class PayloadBatch:
    """Samples on their way into one table, column by column."""

    keys: Sequence[str]
    payloads: Sequence[bytes]
    encodings: Sequence[str]
    attachments: Sequence[bytes | None]
    type: object = None
    """What the configuration of the table says under `type`."""


@dataclass(frozen=True, slots=True)
class DecodedRows:
    """Rows that have the same columns."""

    columns: Mapping[str, pa.Array]
    places: np.ndarray[Any, np.dtype[np.int64]]
    """Which sample of the batch each row is of; a sample may make several rows, or none."""
    refused: Mapping[int, Undecodable] = field(default_factory=dict)
    """Why samples could not be read, by their places."""


@runtime_checkable
class BatchDecoder(Protocol):
    """Reads many payloads at once."""

    def decode_batch(self, batch: PayloadBatch) -> Sequence[DecodedRows]:
        """All samples of a batch, those with the same columns together."""


@lru_cache(maxsize=256)
def decoder_for(encoding: str) -> Decoder | None:
    """The decoder of an encoding by its name, or None if there is none."""
    ours = _OURS.get(encoding)
    if ours is not None:
        return decoder_named(ours)
    return _others().get(encoding)


@lru_cache(maxsize=256)
def decoder_named(place: str) -> Decoder:
    """The decoder that `package.module:Class` names."""
    made = _made(place)
    if not isinstance(made, Decoder):
        raise ConfigError(f"'{place}' is no decoder; it needs `encodings` and `decode`")
    return made


@lru_cache(maxsize=256)
def batch_decoder_named(place: str) -> BatchDecoder | None:
    """The same, if it reads many payloads at once; else None."""
    made = _made(place)
    return made if isinstance(made, BatchDecoder) else None


def _made(place: str) -> object:
    module, colon, name = place.partition(":")
    try:
        if not colon:
            raise ImportError("there is no ':' in it")
        made: object = getattr(importlib.import_module(module), name)()
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"'{place}' names no decoder: {error}; write 'package.module:Class'"
        ) from error
    return made


@lru_cache(maxsize=1)
def _others() -> dict[str, Decoder]:
    decoders: dict[str, Decoder] = {}
    for entry in entry_points(group=GROUP):
        decoder = decoder_named(entry.value)
        for encoding in decoder.encodings:
            decoders.setdefault(encoding, decoder)
    return decoders
