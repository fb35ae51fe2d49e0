from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from zenlake.config import Config
from zenlake.errors import ConfigError

HAS_YAML = importlib.util.find_spec("yaml") is not None
NEEDED = "reading YAML needs PyYAML; install it with: pip install 'zenlake[yaml]'"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("mode: router\nlisten:\n  endpoints: []\n", "router"),
        ("mode: client\nmetadata: {a: [1, 2.5, true, null, 2020-01-01, x]}\n", "client"),
        ("", "node.yaml:1:1: expected an object"),
        ("mode: router\nmode: peer\n", "node.yaml:2:1: 'mode' is written twice in one object"),
        ("listen:\n  endpints: []\n", "node.yaml:2:3: listen/endpints: unknown key; did you mean"),
        ("metadata: &a [1]\nplugins: {x: *a}\n", "anchors and aliases are not read"),
        ("metadata: .inf\n", "node.yaml:1:11: this number is not finite"),
        ("metadata: {? [1] : 2}\n", "expected a name"),
        ("mode: [\n", "not YAML: "),
        ("metadata: " + "[" * 100 + "]" * 100, "nested more than 64 deep"),
        ("metadata: " + "[" * 5000, "nested more than 64 deep"),
        ("mode: \x01", "not YAML: "),
    ],
)
def test_yaml_is_read_as_json5_is_or_asks_for_its_library(
    text: str, answer: str, tmp_path: Path
) -> None:
    path = tmp_path / "node.yaml"
    path.write_text(text)
    try:
        said: str = Config.from_file(path).mode
    except ConfigError as error:
        said = str(error)
    assert (answer if HAS_YAML else NEEDED) in said
