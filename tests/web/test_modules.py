"""Functions of the page that need no browser, run by Node."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.remote import node

PAGE = Path(__file__).resolve().parents[2] / "src" / "zenlake" / "web"
AT = "2026-01-31T12:00:00.000Z"
RUN = """
globalThis.sessionStorage = { getItem: () => "", setItem: () => {} };
const [file, name, given] = process.argv.slice(2);
const module = await import(`./${file}`);
console.log(JSON.stringify(module[name](...JSON.parse(given))));
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's files, where Node takes them for modules."""
    folder = tmp_path_factory.mktemp("page") / "web"
    shutil.copytree(PAGE, folder)
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "run.js").write_text(RUN)
    return folder


def call(page: Path, file: str, name: str, *given: object) -> Any:
    done = subprocess.run(
        [*node.program(), str(page / "run.js"), file, name, json.dumps(given)],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_line_that_replays_names_the_folder_and_the_router(page: Path) -> None:
    service: dict[str, Any] = {
        "data": "/srv/it's here",
        "lake": {},
        "locators": ["tcp/127.0.0.1:7447"],
    }
    line = call(page, "time.js", "replayLine", "robot/**", AT, {"service": service, "node": {}})
    assert shlex.split(line) == [
        "zenlake", "replay", "robot/**", "--from", AT, "--speed", "4", "--prefix", "replay",
        "--lake", "/srv/it's here/lake", "-e", "tcp/127.0.0.1:7447",
    ]  # fmt: skip
    service["lake"] = None
    line = call(page, "time.js", "replayLine", "a", AT, {"service": service, "node": {}})
    assert shlex.split(line)[-4:-2] == ["--journal", "/srv/it's here/journal"]
    router = {"service": None, "node": {"locators": ["tcp/10.0.0.7:7447"]}}
    line = call(page, "time.js", "replayLine", "a", AT, router)
    assert line.endswith("--prefix replay -e tcp/10.0.0.7:7447")


def test_the_map_shows_every_node_and_its_name(page: Path) -> None:
    places = [{"x": 400, "y": 250}, {"x": -700, "y": 90}, {"x": 2000, "y": 1400}]
    left, top, width, height = map(int, call(page, "map.js", "frame", places).split())
    for one in places:
        assert left + 100 <= one["x"] <= left + width - 100
        assert top + 20 <= one["y"] <= top + height - 20
    # One alone is not made larger than the screen.
    assert call(page, "map.js", "frame", places[:1]) == "240 90 320 320"


def test_a_session_that_loses_samples_is_shown_with_what_it_wants(page: Path) -> None:
    rows = [
        {"key": "@/1/router/subscriber/robot/**", "value": {"clients": ["a"], "peers": []}},
        {"key": "@/1/router/subscriber/other", "value": {"clients": [], "peers": ["b"]}},
    ]
    assert call(page, "health.js", "asked", rows, "a") == ["robot/**"]
    assert call(page, "health.js", "asked", rows, "b") == ["other"]
