"""Finds the decoder of an encoding: ours, those of other packages, and one named in a table.

Those of other packages are found by entry points of the group `zenlake.decoders`, or are named in
the configuration of a table: `decoder: "package.module:Class"`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import entry_points
from typing import Final

from zenlake.errors import ConfigError
from zenlake.lake.model.decoder import BatchDecoder, Decoder

__all__ = ["batch_decoder_named", "decoder_for", "decoder_named"]

GROUP: Final = "zenlake.decoders"

_OURS: Final[Mapping[str, str]] = {
    "application/json": "zenlake.lake.decode.formats.json_text:Json",
    "text/json": "zenlake.lake.decode.formats.json_text:Json",
    "application/cbor": "zenlake.lake.decode.formats.cbor:Cbor",
    "text/properties": "zenlake.lake.decode.formats.properties:Properties",
    "application/properties": "zenlake.lake.decode.formats.properties:Properties",
    "zenoh/properties": "zenlake.lake.decode.formats.properties:Properties",
    "text/plain": "zenlake.lake.decode.formats.plain:Plain",
    "zenoh/string": "zenlake.lake.decode.formats.plain:Plain",
    "zenoh/bytes": "zenlake.lake.decode.formats.implied:Implied",
    "zenoh/serialized": "zenlake.lake.decode.formats.serialized:Serialized",
    "application/msgpack": "zenlake.lake.decode.formats.message_pack:MessagePack",
    "application/x-msgpack": "zenlake.lake.decode.formats.message_pack:MessagePack",
    "application/vnd.msgpack": "zenlake.lake.decode.formats.message_pack:MessagePack",
    "application/yaml": "zenlake.lake.decode.formats.yaml_text:Yaml",
    "text/yaml": "zenlake.lake.decode.formats.yaml_text:Yaml",
    "text/csv": "zenlake.lake.decode.formats.comma_separated:Csv",
    "application/protobuf": "zenlake.lake.decode.formats.protocol_buffers:Protobuf",
    "application/x-flatbuffers": "zenlake.lake.decode.formats.flatbuffer:FlatBuffer",
    "application/flatbuffers": "zenlake.lake.decode.formats.flatbuffer:FlatBuffer",
    "application/vnd.apache.arrow.stream": "zenlake.lake.decode.formats.arrow_ipc:ArrowIpc",
    "application/vnd.apache.arrow.file": "zenlake.lake.decode.formats.arrow_ipc:ArrowIpc",
    "image/png": "zenlake.lake.decode.formats.images:Image",
    "image/jpeg": "zenlake.lake.decode.formats.images:Image",
    "image/gif": "zenlake.lake.decode.formats.images:Image",
    "image/bmp": "zenlake.lake.decode.formats.images:Image",
    "image/webp": "zenlake.lake.decode.formats.images:Image",
}


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
