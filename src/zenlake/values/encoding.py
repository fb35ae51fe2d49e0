"""What a payload is: a number for the well-known kinds, text for the rest.

    text/plain                  4
    application/json;utf-8      5, schema "utf-8"
    my/own;v2                   65535 (custom), schema "my/own;v2"

Text becomes (id, schema) at the first `;`. A name that is not in the table is custom, and then
the whole text is the schema. An id without a name can only come from the wire, from a newer
node: it is kept, and shown as `unknown(1000)`.
"""

from __future__ import annotations

from typing import ClassVar, Final, final

from zenlake.errors import EncodingError

__all__ = ["CUSTOM_ID", "ENCODING_NAMES", "MAX_SCHEMA_BYTES", "Encoding"]

CUSTOM_ID: Final = 0xFFFF
MAX_SCHEMA_BYTES: Final = 255

# In order: the place of a name is its id.
ENCODING_NAMES: Final[tuple[str, ...]] = (
    "zenoh/bytes",
    "zenoh/string",
    "zenoh/serialized",
    "application/octet-stream",
    "text/plain",
    "application/json",
    "text/json",
    "application/cdr",
    "application/cbor",
    "application/yaml",
    "text/yaml",
    "text/json5",
    "application/python-serialized-object",
    "application/protobuf",
    "application/java-serialized-object",
    "application/openmetrics-text",
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/bmp",
    "image/webp",
    "application/xml",
    "application/x-www-form-urlencoded",
    "text/html",
    "text/xml",
    "text/css",
    "text/javascript",
    "text/markdown",
    "text/csv",
    "application/sql",
    "application/coap-payload",
    "application/json-patch+json",
    "application/json-seq",
    "application/jsonpath",
    "application/jwt",
    "application/mp4",
    "application/soap+xml",
    "application/yang",
    "audio/aac",
    "audio/flac",
    "audio/mp4",
    "audio/ogg",
    "audio/vorbis",
    "video/h261",
    "video/h263",
    "video/h264",
    "video/h265",
    "video/h266",
    "video/mp4",
    "video/ogg",
    "video/raw",
    "video/vp8",
    "video/vp9",
)
_IDS: Final[dict[str, int]] = {name: id for id, name in enumerate(ENCODING_NAMES)}


@final
class Encoding:
    """The kind of a payload; equal to the text that names it."""

    __slots__ = ("_id", "_schema")

    ZENOH_BYTES: ClassVar[Encoding]
    ZENOH_STRING: ClassVar[Encoding]
    ZENOH_SERIALIZED: ClassVar[Encoding]
    APPLICATION_OCTET_STREAM: ClassVar[Encoding]
    TEXT_PLAIN: ClassVar[Encoding]
    APPLICATION_JSON: ClassVar[Encoding]
    TEXT_JSON: ClassVar[Encoding]
    APPLICATION_CDR: ClassVar[Encoding]
    APPLICATION_CBOR: ClassVar[Encoding]
    APPLICATION_YAML: ClassVar[Encoding]
    TEXT_YAML: ClassVar[Encoding]
    TEXT_JSON5: ClassVar[Encoding]
    APPLICATION_PYTHON_SERIALIZED_OBJECT: ClassVar[Encoding]
    APPLICATION_PROTOBUF: ClassVar[Encoding]
    APPLICATION_JAVA_SERIALIZED_OBJECT: ClassVar[Encoding]
    APPLICATION_OPENMETRICS_TEXT: ClassVar[Encoding]
    IMAGE_PNG: ClassVar[Encoding]
    IMAGE_JPEG: ClassVar[Encoding]
    IMAGE_GIF: ClassVar[Encoding]
    IMAGE_BMP: ClassVar[Encoding]
    IMAGE_WEBP: ClassVar[Encoding]
    APPLICATION_XML: ClassVar[Encoding]
    APPLICATION_X_WWW_FORM_URLENCODED: ClassVar[Encoding]
    TEXT_HTML: ClassVar[Encoding]
    TEXT_XML: ClassVar[Encoding]
    TEXT_CSS: ClassVar[Encoding]
    TEXT_JAVASCRIPT: ClassVar[Encoding]
    TEXT_MARKDOWN: ClassVar[Encoding]
    TEXT_CSV: ClassVar[Encoding]
    APPLICATION_SQL: ClassVar[Encoding]
    APPLICATION_COAP_PAYLOAD: ClassVar[Encoding]
    APPLICATION_JSON_PATCH_JSON: ClassVar[Encoding]
    APPLICATION_JSON_SEQ: ClassVar[Encoding]
    APPLICATION_JSONPATH: ClassVar[Encoding]
    APPLICATION_JWT: ClassVar[Encoding]
    APPLICATION_MP4: ClassVar[Encoding]
    APPLICATION_SOAP_XML: ClassVar[Encoding]
    APPLICATION_YANG: ClassVar[Encoding]
    AUDIO_AAC: ClassVar[Encoding]
    AUDIO_FLAC: ClassVar[Encoding]
    AUDIO_MP4: ClassVar[Encoding]
    AUDIO_OGG: ClassVar[Encoding]
    AUDIO_VORBIS: ClassVar[Encoding]
    VIDEO_H261: ClassVar[Encoding]
    VIDEO_H263: ClassVar[Encoding]
    VIDEO_H264: ClassVar[Encoding]
    VIDEO_H265: ClassVar[Encoding]
    VIDEO_H266: ClassVar[Encoding]
    VIDEO_MP4: ClassVar[Encoding]
    VIDEO_OGG: ClassVar[Encoding]
    VIDEO_RAW: ClassVar[Encoding]
    VIDEO_VP8: ClassVar[Encoding]
    VIDEO_VP9: ClassVar[Encoding]

    def __init__(self, encoding: str | Encoding | None = None) -> None:
        """Read the text of an encoding; nothing is `zenoh/bytes`."""
        self._id: int = 0
        self._schema: bytes | None = None
        if encoding is None:
            return
        if isinstance(encoding, Encoding):
            self._id = encoding._id
            self._schema = encoding._schema
        elif isinstance(encoding, str):
            self._id, self._schema = _parse(encoding)
        else:
            raise TypeError(f"an encoding is text, not {type(encoding).__name__}")

    @classmethod
    def of(cls, encoding: Encoding | str | None) -> Encoding:
        """The encoding itself, or the one that a text names; nothing is `zenoh/bytes`.

        Args:
            encoding: An encoding, its text, or None for the default.
        """
        if isinstance(encoding, Encoding):
            return encoding
        if encoding is None:
            return _KNOWN[0]
        id, schema = _parse(encoding)
        return from_wire(id, schema)

    @staticmethod
    def from_wire(id: int, schema: bytes | None = None) -> Encoding:
        """The encoding with this id and schema; the same object for the common ones.

        Args:
            id: The number of the encoding.
            schema: What stands behind the `;` of its text.
        """
        return from_wire(id, schema)

    def with_schema(self, /, schema: str) -> Encoding:
        """The same encoding with another schema.

        Args:
            schema: What stands behind the `;` of its text.
        """
        if self._id != CUSTOM_ID:
            return from_wire(self._id, _schema_bytes(schema))
        # A custom encoding is all schema; its own name ends at the first `;`.
        name = str(self).partition(";")[0]
        return Encoding(f"{name};{schema}" if schema else name)

    @property
    def id(self) -> int:
        """The number on the wire: 0 to 52, 65535 for custom, others from newer nodes."""
        return self._id

    @property
    def schema(self) -> bytes | None:
        """What stands after the `;`, or the whole text of a custom encoding."""
        return self._schema

    def __str__(self) -> str:
        schema = ""
        if self._schema is not None:
            try:
                schema = self._schema.decode()
            except UnicodeDecodeError:
                schema = "unknown(non-utf8)"
            if self._id == CUSTOM_ID:
                return schema
        name = f"unknown({self._id})"
        if self._id < len(ENCODING_NAMES):
            name = ENCODING_NAMES[self._id]
        return name if self._schema is None else f"{name};{schema}"

    def __repr__(self) -> str:
        return f"Encoding({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Encoding):
            return self._id == other._id and self._schema == other._schema
        if isinstance(other, str):
            try:
                id, schema = _parse(other)
            except EncodingError:
                return False
            return self._id == id and self._schema == schema
        return NotImplemented

    # Equal to its text, so it must be found where its text is.
    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> tuple[object, tuple[int, bytes | None]]:
        return Encoding.from_wire, (self._id, self._schema)


def _make(id: int, schema: bytes | None) -> Encoding:
    encoding = Encoding()
    encoding._id = id
    encoding._schema = schema
    return encoding


_KNOWN: Final[list[Encoding]] = [_make(id, None) for id in range(len(ENCODING_NAMES))]
for _encoding in _KNOWN:
    _name = str(_encoding).upper().replace("/", "_").replace("-", "_").replace("+", "_")
    setattr(Encoding, _name, _encoding)

# A node uses few schemas, each many times; a stranger may send many, once each.
_MAX_SEEN: Final = 256
_SEEN: Final[dict[tuple[int, bytes | None], Encoding]] = {}


def from_wire(id: int, schema: bytes | None) -> Encoding:
    """The encoding with this id and schema; the same object for the common ones."""
    if schema is None and 0 <= id < len(_KNOWN):
        return _KNOWN[id]
    encoding = _SEEN.get((id, schema))
    if encoding is None:
        if not 0 <= id <= CUSTOM_ID:
            raise EncodingError(f"{id} is not the id of an encoding; ids have 16 bits")
        if schema is not None and len(schema) > MAX_SCHEMA_BYTES:
            raise _too_long(schema)
        encoding = _make(id, schema)
        if len(_SEEN) >= _MAX_SEEN:
            _SEEN.clear()
        _SEEN[(id, schema)] = encoding
    return encoding


def _parse(text: str) -> tuple[int, bytes | None]:
    """The id and schema of a text."""
    if not text:
        return 0, None
    name, _, schema = text.partition(";")
    id = _IDS.get(name, CUSTOM_ID)
    if id == CUSTOM_ID:
        return id, _schema_bytes(text)
    return id, _schema_bytes(schema) if schema else None


def _schema_bytes(schema: str) -> bytes:
    try:
        data = schema.encode()
    except UnicodeEncodeError as error:
        raise EncodingError(f"{schema[:80]!r} cannot be written as UTF-8") from error
    if len(data) > MAX_SCHEMA_BYTES:
        raise _too_long(data)
    return data


def _too_long(schema: bytes) -> EncodingError:
    return EncodingError(
        f"the schema {schema[:40]!r}... has {len(schema)} bytes; at most {MAX_SCHEMA_BYTES} fit "
        "an encoding: name the schema, and send it elsewhere"
    )
