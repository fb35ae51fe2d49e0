from __future__ import annotations

import os
import zipfile
from email.message import Message
from email.parser import Parser
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import zenlake
from hatch_build import (
    MARK,
    CompiledModules,
    compiled_modules,
    digest,
    extension_files,
    read_with,
)
from tests.build.made import build
from tools.compiled_tree import ROOT

EXTENSIONS = tuple(EXTENSION_SUFFIXES)


def dist_info(wheel: zipfile.ZipFile, name: str) -> Message:
    text = wheel.read(f"zenlake-{zenlake.__version__}.dist-info/{name}").decode()
    return Parser().parsestr(text)


def test_a_pure_wheel_holds_no_extension_and_fits_every_machine(pure: zipfile.ZipFile) -> None:
    assert not [name for name in pure.namelist() if name.endswith(EXTENSIONS)]
    assert dist_info(pure, "WHEEL")["Tag"] == "py3-none-any"
    assert dist_info(pure, "WHEEL")["Root-Is-Purelib"] == "true"


def test_a_wheel_holds_the_module_that_spark_looks_for(pure: zipfile.ZipFile) -> None:
    assert {"pyspark_zenlake/__init__.py", "pyspark_zenoh/__init__.py"} <= set(pure.namelist())


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


def hook_in(folder: Path, told: list[str]) -> CompiledModules:
    """The hook for a project with one module, which has the wrong types."""
    (folder / "src").mkdir()
    (folder / "src" / "wrong.py").write_text("number: int = 'not a number'\n")
    (folder / "pyproject.toml").write_text("[tool.zenlake]\ncompiled = ['wrong']\n")

    class Application:
        def display_warning(self, text: str) -> None:
            told.append(text)

    root = str(folder)
    return CompiledModules(root, {}, None, None, root, "wheel", Application())  # type: ignore[arg-type]


def test_where_compiling_fails_the_build_says_why_in_one_line_and_stays_pure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[str] = []
    data: dict[str, object] = {"force_include": {}}
    monkeypatch.delenv("ZENLAKE_BUILD", raising=False)
    hook_in(tmp_path, told).initialize("standard", data)
    (line,) = told
    assert "compiling failed" in line
    assert "building the pure wheel" in line
    assert "\n" not in line
    assert data == {"force_include": {}}
    assert "Incompatible types in assignment" in capsys.readouterr().err


def test_where_compiling_fails_a_build_that_must_compile_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZENLAKE_BUILD", "compiled")
    with pytest.raises(RuntimeError, match="ZENLAKE_BUILD=compiled, but compiling failed"):
        hook_in(tmp_path, []).initialize("standard", {"force_include": {}})


def project_in(folder: Path) -> Path:
    """The sources of a project whose module `hot` is compiled, and imports `cold` by a package."""
    (folder / "pyproject.toml").write_text("[tool.zenlake]\ncompiled = ['hot']\n")
    source = folder / "src"
    (source / "rooms").mkdir(parents=True)
    (source / "rooms" / "__init__.py").touch()
    (source / "rooms" / "cold.py").write_text("import sys\nNUMBER = 7\n")
    (source / "rooms" / "other.py").write_text("NUMBER = 8\n")
    (source / "hot.py").write_text(
        "def f() -> int:\n    from rooms import cold\n    return cold.NUMBER\n"
    )
    return source


def test_what_is_compiled_is_made_from_all_that_it_imports(tmp_path: Path) -> None:
    source = project_in(tmp_path)
    names = {"hot.py", "rooms/__init__.py", "rooms/cold.py"}
    assert {path.relative_to(source).as_posix() for path in read_with(source, ["hot"])} == names
    first = digest(tmp_path, ["hot"])
    (source / "rooms" / "other.py").write_text("NUMBER = 9\n")
    assert digest(tmp_path, ["hot"]) == first
    (source / "rooms" / "cold.py").write_text("NUMBER = 9\n")
    assert digest(tmp_path, ["hot"]) != first


def test_what_has_not_changed_is_not_compiled_again(tmp_path: Path) -> None:
    source, work = project_in(tmp_path), tmp_path / "work"
    files = extension_files(tmp_path, work)
    made = {path: Path(path).stat().st_mtime_ns for path in files}
    (source / "rooms" / "other.py").write_text("NUMBER = 9\n")
    assert extension_files(tmp_path, work) == files
    assert {path: Path(path).stat().st_mtime_ns for path in files} == made
    (source / "rooms" / "cold.py").write_text("NUMBER = 9.5\n")
    with pytest.raises(SystemExit):  # the types are read again, and no longer fit
        extension_files(tmp_path, work)


def test_objects_are_kept_by_their_content_and_deleted_when_no_build_uses_them(
    tmp_path: Path,
) -> None:
    source, work = project_in(tmp_path), tmp_path / "work"
    extension_files(tmp_path, work)
    kept = {path: path.stat().st_ino for path in work.glob("objects/*/*")}
    assert kept
    unused = next(iter(kept)).with_name("unused.o")
    unused.touch()
    os.utime(unused, (0, 0))
    # The marker goes, and every file is newer: only the content is as it was.
    for path in (work / MARK, *work.glob("lib/**/*.so"), *work.glob("c/*.o")):
        path.unlink()
    for path in (*source.rglob("*.py"), *work.glob("c/*.[ch]")):
        path.touch()
    files = extension_files(tmp_path, work)
    assert all(Path(path).is_file() for path in files)
    assert {path: path.stat().st_ino for path in work.glob("objects/*/*")} == kept
    assert not unused.exists()


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
