"""Installing as users do: in an empty environment, where pip brings what a build takes."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import zenlake
from hatch_build import MARK
from tools.compiled_tree import BUILD, ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

#: The first things that a user does: a sample goes from one session to another, through bytes.
TRIED = """
import zenlake
config = zenlake.Config.from_json5('{mode: "peer", scouting: {multicast: {enabled: false}}}')
config.insert_json5("listen/endpoints", '["tcp/127.0.0.1:0"]')
with zenlake.open(config) as session:
    subscriber = session.declare_subscriber("demo/**")
    session.put("demo/a", "b")
    assert subscriber.recv().payload.to_string() == "b"
print(zenlake.__path__[0], zenlake.compiled)
"""


def outside(**settings: str) -> dict[str, str]:
    """An environment that knows nothing of this project's own."""
    kept = {"PATH", "HOME", "TMPDIR", "LANG", "PIP_INDEX_URL", "PIP_CACHE_DIR", "HTTPS_PROXY"}
    shown = {name: text for name, text in os.environ.items() if name in kept}
    return shown | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"} | settings


def run(*command: str | Path, cwd: Path, **settings: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=outside(**settings), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an empty environment, with the pip that this Python brings."""
    folder = tmp_path_factory.mktemp("empty")
    run(sys.executable, "-m", "venv", folder, cwd=folder)
    return folder


def tried(environment: Path, kind: str) -> None:
    """The command runs, and so does the package, from where they were installed."""
    folder = environment / "bin"
    told = run(folder / "zenlake", "info", cwd=environment)
    assert told.startswith(f"zenlake   {zenlake.__version__} ({kind})\n")
    path, compiled = run(folder / "python", "-c", TRIED, cwd=environment).split()
    assert path.startswith(str(environment))
    assert compiled == str(kind == "compiled")


def test_pip_installs_the_folder_compiled_in_an_empty_environment(empty: Path) -> None:
    """The build runs where there is nothing but what it asked for.

    What `make` has compiled is taken if pip made it, in an environment as empty as this one is;
    what the environment of the tests has made shows nothing, and is made anew.
    """
    mark = BUILD / "mypyc" / MARK
    if mark.is_file() and Path(mark.read_text().splitlines()[1]).is_relative_to(sys.prefix):
        mark.unlink()
    run(
        empty / "bin" / "pip",
        "install",
        ROOT,
        cwd=empty,
        ZENLAKE_BUILD="compiled",
        ZENLAKE_BUILD_DIR=str(BUILD / "mypyc"),
    )
    tried(empty, "compiled")


@pytest.mark.nightly(day="build/test_install.py, build/test_wheels.py")
def test_the_source_archive_holds_what_a_build_takes(empty: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path, cwd=ROOT)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    assert {"pyproject.toml", "hatch_build.py", "src/zenlake/py.typed", "Makefile"} <= names
    pip = empty / "bin" / "pip"
    run(pip, "install", "--force-reinstall", archive, cwd=tmp_path, ZENLAKE_BUILD="pure")
    tried(empty, "interpreted")


@pytest.mark.nightly(day="build/test_install.py, build/test_wheels.py")
@pytest.mark.parametrize("kind", ["compiled", "interpreted"])
def test_either_wheel_installs_and_runs(
    kind: str, empty: Path, request: pytest.FixtureRequest
) -> None:
    wheel = request.getfixturevalue("compiled" if kind == "compiled" else "pure").filename
    run(empty / "bin" / "pip", "install", "--force-reinstall", wheel, cwd=empty)
    tried(empty, kind)
