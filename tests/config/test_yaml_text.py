from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from zenlake.config import Config
from zenlake.errors import ConfigError

HAS_YAML = importlib.util.find_spec("yaml") is not None
NEEDED = "reading YAML needs PyYAML; install it with: pip install 'zenlake[yaml]'"


@pytest.mark.filterwarnings("ignore::zenlake.config.ConfigWarning")
@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("mode: router\nlisten:\n  endpoints: []\n", "router"),
        ("mode: client\nmetadata: {a: [1, 2.5, true, null, 2020-01-01, x]}\n", "client"),
        ("metadata: {a: !!binary YQ==, b: 0x10}\nmode: peer\n", "peer"),
        ("metadata: " + "9" * 5000, "this number cannot be read"),
        ("", "node.yaml:1:1: expected an object"),
        ("mode: router\nmode: peer\n", "node.yaml:2:1: 'mode' is written twice in one object"),
        ("listen:\n  endpints: []\n", "node.yaml:2:3: listen/endpints: unknown key; did you mean"),
        ("metadata: &a [1]\nplugins: {x: *a}\n", "anchors and aliases are not read"),
        ("metadata: .inf\n", "node.yaml:1:11: this number is not finite"),
        ("metadata: {? [1] : 2}\n", "expected a name"),
        ("mode: [\n", "not YAML: "),
        ("metadata: " + "[" * 100 + "]" * 100, "nested more than 64 deep"),
        ("metadata: " + "[" * 200_000, "nested more than 64 deep"),
        (" " * 300_000, "at most 262144 of YAML are read"),
        ("mode: \x01", "not YAML: "),
    ],
)
def test_yaml_is_read_as_json5_is_or_asks_for_its_library(
    text: str, answer: str, tmp_path: Path
) -> None:
    path = tmp_path / "node.yaml"
    path.write_text(text)
    assert (answer if HAS_YAML else NEEDED) in said_of(path)


def test_without_its_library_yaml_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    path = tmp_path / "node.yml"
    path.write_text("mode: router")
    assert said_of(path) == NEEDED


def said_of(path: Path) -> str:
    try:
        return Config.from_file(path).mode
    except ConfigError as error:
        return str(error)
