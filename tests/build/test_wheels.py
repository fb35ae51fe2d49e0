from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import zenlake
from hatch_build import CompiledModules, compiled_modules
from tools.compiled_tree import ROOT, WHEELS, build_wheel, fingerprint, is_fresh

EXTENSIONS = tuple(EXTENSION_SUFFIXES)
PIP = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation")


def build(folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Build a wheel into `folder` as a front end would."""
    return subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        env={name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ} | settings,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def pure(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("pure")
    done = build(folder, ZENLAKE_BUILD="pure")
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    return zipfile.ZipFile(wheel)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    # `make` has just built it. Without `make`, leave the tree alone: it may be what runs us.
    if is_fresh(fingerprint()):
        (wheel,) = WHEELS.glob("*.whl")
        return zipfile.ZipFile(wheel)
    return zipfile.ZipFile(build_wheel(tmp_path_factory.mktemp("compiled")))


def dist_info(wheel: zipfile.ZipFile, name: str) -> Message:
    text = wheel.read(f"zenlake-{zenlake.__version__}.dist-info/{name}").decode()
    return Parser().parsestr(text)


def test_a_pure_wheel_holds_no_extension_and_fits_every_machine(pure: zipfile.ZipFile) -> None:
    assert not [name for name in pure.namelist() if name.endswith(EXTENSIONS)]
    assert dist_info(pure, "WHEEL")["Tag"] == "py3-none-any"
    assert dist_info(pure, "WHEEL")["Root-Is-Purelib"] == "true"


def test_a_wheel_holds_the_module_that_spark_looks_for(pure: zipfile.ZipFile) -> None:
    assert "pyspark_zenoh/__init__.py" in pure.namelist()


def test_a_compiled_wheel_holds_the_listed_modules_and_their_one_library(
    compiled: zipfile.ZipFile,
) -> None:
    found = {
        name.removesuffix(EXTENSIONS[0]).replace("/", ".")
        for name in compiled.namelist()
        if name.endswith(EXTENSIONS)
    }
    assert found == {"zenlake__mypyc", *compiled_modules(ROOT)}
    assert dist_info(compiled, "WHEEL")["Tag"].startswith("cp3")


def test_both_wheels_say_the_same_of_themselves(
    pure: zipfile.ZipFile, compiled: zipfile.ZipFile
) -> None:
    assert dist_info(pure, "METADATA").items() == dist_info(compiled, "METADATA").items()
    assert dist_info(pure, "METADATA")["Version"] == zenlake.__version__


def test_both_wheels_carry_the_same_sources(
    pure: zipfile.ZipFile, compiled: zipfile.ZipFile
) -> None:
    def sources(wheel: zipfile.ZipFile) -> dict[str, int]:
        return {file.filename: file.CRC for file in wheel.infolist() if "/" in file.filename}

    missing = sources(pure).keys() - sources(compiled).keys()
    assert not missing
    kept = [name for name in sources(pure) if ".dist-info/" not in name]
    assert "zenlake/py.typed" in kept
    assert all(sources(pure)[name] == sources(compiled)[name] for name in kept)


def test_without_a_compiler_the_build_says_so_and_stays_pure(tmp_path: Path) -> None:
    done = build(tmp_path, CC="/no/such/compiler")
    assert done.returncode == 0
    assert "no working C compiler" in done.stderr
    assert [wheel.name for wheel in tmp_path.iterdir()] == [
        f"zenlake-{zenlake.__version__}-py3-none-any.whl"
    ]


def test_without_a_compiler_a_build_that_must_compile_fails(tmp_path: Path) -> None:
    done = build(tmp_path, CC="/no/such/compiler", ZENLAKE_BUILD="compiled")
    assert done.returncode != 0
    assert "ZENLAKE_BUILD=compiled, but no working C compiler" in done.stderr
    assert not list(tmp_path.iterdir())


def test_an_unknown_kind_of_build_is_refused(tmp_path: Path) -> None:
    done = build(tmp_path, ZENLAKE_BUILD="fast")
    assert done.returncode != 0
    assert "ZENLAKE_BUILD='fast': write 'compiled' or 'pure'" in done.stderr


def test_only_a_build_that_compiles_asks_for_the_compiler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hook = CompiledModules(str(ROOT), {}, None, None, str(tmp_path), "wheel")  # type: ignore[arg-type]
    monkeypatch.setenv("ZENLAKE_BUILD", "pure")
    assert hook.dependencies() == []
    monkeypatch.delenv("ZENLAKE_BUILD")
    assert any(need.startswith("mypy==") for need in hook.dependencies())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pure", "compiled"])
def test_pip_installs_either_kind_and_the_command_runs(kind: str, tmp_path: Path) -> None:
    subprocess.run(
        [*PIP, "--target", str(tmp_path), str(ROOT)],
        env=os.environ
        | {"ZENLAKE_BUILD": kind, "ZENLAKE_BUILD_DIR": str(ROOT / "build" / "mypyc")},
        check=True,
    )
    told = subprocess.run(
        [sys.executable, str(tmp_path / "bin" / "zenlake"), "info"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    word = "compiled" if kind == "compiled" else "interpreted"
    assert told.stdout.startswith(f"zenlake   {zenlake.__version__} ({word})\n")
    assert str(tmp_path) in told.stdout
