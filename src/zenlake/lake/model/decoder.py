"""What a decoder is: it turns the bytes of one sample into named fields.

    class Csv:
        encodings = ("text/csv",)

        def decode(self, payload, schema, type):
            return dict(zip(schema.split(","), payload.decode().split(","), strict=True))

A decoder that reads many payloads faster at once than one by one has `decode_batch` beside
`decode`, or instead of it: it gives Arrow columns, whatever their types (`BatchDecoder`). A decoder
raises `Undecodable` with a reason; whatever else it raises is taken for one too, so no payload can
stop the stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from zenlake.errors import DecodeError

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
]

Fields = Mapping[str, object]
"""Values by name: bool, int, float, str, bytes, None, lists and mappings of these."""

WHOLE: Final = "value"
"""The field of a payload that is one value and names no fields."""


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
    """Two fields come to one column, or a name stands twice in one object."""
    COLUMNS = "columns"
    """There would be too many columns."""
    DEFINITION = "definition"
    """What the payload is made of is not known (yet)."""
    CRASH = "crash"
    """The process that decoded the payload ended, each time."""
    COLUMN = "column"
    """The column does not take the value, for a reason that has no error of its own."""
    EXPECTATION = "expectation"
    """A row of a pipeline does not meet an expectation; `field` names the expectation."""


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
