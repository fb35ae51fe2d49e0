"""What can be sent: bytes, text, JSON, and values that any Zenoh program can read back."""

from __future__ import annotations

import json

import zenlake as zenoh


def main() -> None:
    """Run it."""
    # Bytes as they are; Encoding.ZENOH_BYTES says so.
    data = b"raw bytes"
    assert zenoh.ZBytes(data).to_bytes() == data

    # Text; Encoding.ZENOH_STRING.
    text = "text, as UTF-8"
    assert zenoh.ZBytes(text).to_string() == text

    # JSON; Encoding.APPLICATION_JSON.
    person = {"name": "Ada", "born": 1815, "wrote": ["Note A", "Note G"]}
    assert json.loads(zenoh.ZBytes(json.dumps(person)).to_string()) == person

    # Zenoh's own way to write values; Encoding.ZENOH_SERIALIZED.
    serialize, deserialize = zenoh.ext.z_serialize, zenoh.ext.z_deserialize

    # Numbers of a given width, and integers of any width.
    number = zenoh.ext.UInt32(1234)
    assert len(serialize(number).to_bytes()) == 4
    assert deserialize(zenoh.ext.UInt32, serialize(number)) == number
    assert deserialize(int, serialize(42)) == 42

    # Lists, dictionaries and tuples of them.
    readings = [0.0, 1.5, 42.0]
    assert deserialize(list[float], serialize(readings)) == readings
    names = {0: "abc", 1: "def"}
    assert deserialize(dict[int, str], serialize(names)) == names
    pair = (0.42, "string")
    assert deserialize(tuple[float, str], serialize(pair)) == pair


if __name__ == "__main__":
    main()
