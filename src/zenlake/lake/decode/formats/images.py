"""Images: what their headers say; the bytes stay in `samples`.

format · width · height · bytes
"""

from __future__ import annotations

import struct
from typing import Final

from zenlake.lake.model.decoder import Fields, Undecodable

__all__ = ["Image", "size_of"]

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_JPEG: Final = b"\xff\xd8"
_ALONE: Final = frozenset((0x01, *range(0xD0, 0xD8)))
"""Markers of JPEG that nothing belongs to."""
_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of JPEG whose segment says the size."""
_SCAN: Final = frozenset((0xD9, 0xDA))


class Image:
    """Reads the headers of PNG, JPEG, GIF, BMP and WebP, whichever it is."""

    encodings = ("image/png", "image/jpeg", "image/gif", "image/bmp", "image/webp")

    def decode(self, payload: bytes, schema: str, type: object) -> Fields:
        """Its format, its size in pixels, and how many bytes it has."""
        try:
            format, width, height = size_of(payload)
        except (struct.error, IndexError) as error:
            raise Undecodable("the header of the image is cut off") from error
        if width <= 0 or height <= 0:
            raise Undecodable(f"{format} of {width} by {height} pixels is no image")
        return {"format": format, "width": width, "height": height, "bytes": len(payload)}


def size_of(image: bytes) -> tuple[str, int, int]:
    """Format, width and height."""
    if image.startswith(_PNG):
        if image[12:16] != b"IHDR":
            raise Undecodable("a PNG whose first chunk is not IHDR")
        return "png", *struct.unpack_from(">II", image, 16)
    if image.startswith(_JPEG):
        return "jpeg", *_jpeg(image)
    if image[:6] in (b"GIF87a", b"GIF89a"):
        return "gif", *struct.unpack_from("<HH", image, 6)
    if image.startswith(b"BM"):
        width, height = struct.unpack_from("<ii", image, 18)
        return "bmp", width, abs(height)
    if image.startswith(b"RIFF") and image[8:12] == b"WEBP":
        return "webp", *_webp(image)
    raise Undecodable("the bytes begin like no image that is known (PNG, JPEG, GIF, BMP, WebP)")


def _jpeg(image: bytes) -> tuple[int, int]:
    at = 2
    while True:
        if image[at] != 0xFF:
            raise Undecodable(f"a JPEG without a marker at byte {at}")
        marker = image[at + 1]
        if marker == 0xFF:
            at += 1
        elif marker in _ALONE:
            at += 2
        elif marker in _SCAN:
            raise Undecodable("a JPEG that does not say its size")
        elif marker in _FRAMES:
            height, width = struct.unpack_from(">HH", image, at + 5)
            return width, height
        else:
            (length,) = struct.unpack_from(">H", image, at + 2)
            at += 2 + max(2, length)


def _webp(image: bytes) -> tuple[int, int]:
    kind = image[12:16]
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", image, 26)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", image, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X":
        if len(image) < 30:
            raise struct.error
        width = int.from_bytes(image[24:27], "little") + 1
        return width, int.from_bytes(image[27:30], "little") + 1
    raise Undecodable(f"a WebP that begins with {kind!r}")
