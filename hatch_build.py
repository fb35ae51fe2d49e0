"""Builds the wheel: compiles the hot modules by mypyc, or leaves them as they are.

    ZENLAKE_BUILD=compiled   compile; a machine that cannot is an error
    ZENLAKE_BUILD=pure       do not compile: one py3-none-any wheel for every machine
    (unset)                  compile; where that fails, say why in one line and stay pure

Both wheels carry the same version and the same `.py` files. A compiled wheel only adds
extension modules beside them, which Python prefers; take them away and everything still works.

`ZENLAKE_BUILD_DIR` keeps what was made and a digest of what it was made from, so that a second
build does nothing where no compiled module has changed, nor one that they import. Objects of the C
compiler are kept there by the content they were made from; without it all of that lives in a
temporary folder.
`ZENLAKE_BUILD_PROGRESS` names a file that always holds how far the build is, in one line.
"""

from __future__ import annotations

import ast
import contextlib
import fnmatch
import hashlib
import io
import os
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = "src"
KINDS = ("compiled", "pure", "")

MYPY = (
    # Not the project's own settings: they are for those who work on it. A build compiles what
    # `make types` has checked, for the Python that runs it, and without the libraries of the
    # extras: pip's build environment has none of them, and no compiled module touches one.
    "--config-file=",
    f"--cache-dir={os.devnull}",
    "--explicit-package-bases",
    "--ignore-missing-imports",
    "--follow-imports=silent",
    # Where the libraries of the extras are installed, mypy would read a thousand modules of
    # theirs: nine tenths of its time, for the same C.
    "--no-site-packages",
)
"""How mypy reads the modules for a build."""

KEEP_OBJECTS_SECONDS = 14 * 24 * 3600
"""How long an object of the C compiler is kept that no build uses."""
PRINT_EVERY_SECONDS = 20.0
"""How often a log is told how far the build is."""
LINK = ["-Wl,-Bsymbolic"] if sys.platform == "linux" else []
"""Binds the library's own names when it is linked, not one by one whenever it is loaded."""

MARK = "made-from.txt"
"""Beside what was made: a digest of what it was made from, the mypy that made it, the files."""


class NotCompiled(Exception):
    """The modules did not compile; the text is the reason in one line."""


def compiled_modules(root: Path) -> list[str]:
    """The modules to compile, sorted: `[tool.zenlake] compiled` with its patterns filled in."""
    patterns: list[str] = _project(root)["tool"]["zenlake"]["compiled"]
    source = root / SOURCE
    present = [
        ".".join(path.relative_to(source).with_suffix("").parts)
        for path in source.rglob("*.py")
        if path.name != "__init__.py"
    ]
    return sorted(
        module
        for module in present
        if any(fnmatch.fnmatchcase(module, pattern) for pattern in patterns)
    )


def extension_files(root: Path, work: Path) -> dict[str, str]:
    """Compile the hot modules under `work`; gives file on disk → place in the wheel."""
    import mypy
    from mypyc.build import mypycify
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    modules = compiled_modules(root)
    paths = [f"{SOURCE}/{module.replace('.', '/')}.py" for module in modules]
    library = work / "lib"
    mark, wanted = work / MARK, digest(root, modules)
    made_from, _, *places = mark.read_text().splitlines() if mark.is_file() else ("", "")
    if made_from == wanted and all((library / place).is_file() for place in places):
        return {str(library / place): place for place in places}
    mark.unlink(missing_ok=True)
    with _inside(root):
        _progress(f"reading the types of {len(modules)} modules")
        # One group: the modules share one library, and call each other in C.
        extensions = mypycify(
            [*MYPY, *paths],
            group_name="zenlake",
            target_dir=str(work / "c"),
            debug_level="0",
            # A file for each module: they are compiled side by side.
            multi_file=True,
        )
        for extension in extensions:
            extension.extra_link_args += LINK
        command = build_ext(Distribution({"name": "zenlake", "ext_modules": extensions}))
        side_by_side(command, work / "c", work / "objects" / made_by())
        command.parallel = os.cpu_count()
        command.build_lib = str(library)
        command.build_temp = str(work / "temporary")
        command.ensure_finalized()
        command.run()
        _progress("")
        built = [command.get_ext_fullpath(extension.name) for extension in extensions]
    files = {path: Path(path).relative_to(library).as_posix() for path in built}
    mark.write_text("\n".join([wanted, mypy.__path__[0], *files.values()]))
    return files


def digest(root: Path, modules: list[str]) -> str:
    """What the extensions of `modules` are made from: compilers, settings, and all texts read."""
    source = root / SOURCE
    found = hashlib.sha256("\0".join([made_by(), *MYPY, *modules]).encode())
    found.update(Path(__file__).read_bytes())  # how the compilers are called
    for path in sorted(read_with(source, modules)):
        found.update(f"\0{path.relative_to(source)}\0".encode() + path.read_bytes())
    return found.hexdigest()


def read_with(source: Path, modules: list[str]) -> set[Path]:
    """The files of ours that a type checker reads for `modules`: they and all that they import."""
    found: set[Path] = set()
    names = list(modules)
    while names:
        name = names.pop()
        path = source.joinpath(*name.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if path in found or not path.is_file():
            continue
        found.add(path)
        parent = name.rpartition(".")[0]
        names += [parent] if parent else []
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                names += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                # What is imported from a package may be a module of it.
                names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


def compiled_or_why_not(root: Path, work: Path) -> dict[str, str]:
    """The files of `extension_files`; `NotCompiled` for whatever goes wrong on the way to them."""
    reason = why_not_compiled()
    if reason:
        raise NotCompiled(reason)
    said = io.StringIO()
    try:
        # mypyc prints what it finds and exits; only a failure is worth showing.
        with contextlib.redirect_stdout(said):
            return extension_files(root, work)
    except (Exception, SystemExit) as error:
        print(said.getvalue(), end="", file=sys.stderr)
        text = " ".join(str(error).split()) or "see above"
        raise NotCompiled(f"compiling failed ({type(error).__name__}: {text})") from error


def made_by() -> str:
    """Which compiler made objects, for which interpreter: those of others are not reused."""
    from mypy.version import __version__ as version

    flags = [os.environ.get(name, "") for name in ("CC", "CFLAGS")]
    said = "\n".join([sys.version, version, *flags])
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def side_by_side(command: Any, headers: Path, kept: Path) -> None:
    """Have a `build_ext` compile several files at a time, and none whose object is in `kept`."""
    build_extensions = command.build_extensions

    def build() -> None:
        compiler = command.compiler
        compile_all = compiler.compile
        common = hashlib.sha256()
        for header in sorted(headers.glob("*.h")):
            common.update(f"\0{header.name}\0".encode() + header.read_bytes())

        def compile_one(source: str, settings: dict[str, Any]) -> str:
            digest = common.copy()
            flags = [settings.get(name) for name in ("macros", "extra_preargs", "extra_postargs")]
            digest.update(f"\0{flags}\0".encode() + Path(source).read_bytes())
            found = kept / f"{digest.hexdigest()[:32]}{compiler.obj_extension}"
            if found.is_file():
                found.touch()  # used: see `forget_unused`
            else:
                (made,) = compile_all([source], **settings)
                os.replace(made, found)
            return str(found)

        def compile_each(sources: list[str], **settings: Any) -> list[str]:
            # The largest first, so that nobody waits for it at the end.
            sources = sorted(sources, key=os.path.getsize, reverse=True)
            bytes_left = total = sum(map(os.path.getsize, sources))
            found: list[str] = []
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                made = pool.map(lambda source: compile_one(source, settings), sources)
                for number, (source, path) in enumerate(zip(sources, made, strict=True), 1):
                    found.append(path)
                    bytes_left -= os.path.getsize(source)
                    share = 1 - bytes_left / max(total, 1)
                    if len(sources) > 1:  # not the stubs, each an extension of its own
                        _progress(f"compiled {number} of {len(sources)} files, {share:.0%}")
            return found

        kept.mkdir(parents=True, exist_ok=True)
        compiler.compile = compile_each
        build_extensions()
        forget_unused(kept)

    command.build_extensions = build


def forget_unused(kept: Path) -> None:
    """Delete objects that no build has used for `KEEP_OBJECTS_SECONDS`."""
    oldest = time.time() - KEEP_OBJECTS_SECONDS
    for path in kept.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another build deleted it
            if path.stat().st_mtime < oldest:
                path.unlink()


def why_not_compiled() -> str:
    """What this machine lacks for compiling; empty when it lacks nothing."""
    try:
        import mypyc.build  # noqa: F401
        from setuptools import Distribution
        from setuptools.command.build_ext import build_ext
        from setuptools.errors import CompileError, PlatformError
        from setuptools.extension import Extension
    except ImportError as error:
        return f"{error.name} is not installed"
    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder, "probe.c")
        # The shape of an extension, so that the headers and the linker are tried as well.
        probe.write_text("#include <Python.h>\nPyMODINIT_FUNC PyInit_probe(void) { return 0; }\n")
        command = build_ext(
            Distribution({"name": "probe", "ext_modules": [Extension("probe", [str(probe)])]})
        )
        command.build_lib = command.build_temp = folder
        command.ensure_finalized()
        try:
            command.run()
        except (CompileError, PlatformError, OSError) as error:
            return f"no working C compiler ({error})"
        except Exception as error:  # setuptools has many more words for "it did not link"
            return f"no working C compiler ({type(error).__name__}: {error})"
    return ""


class CompiledModules(BuildHookInterface[Any]):
    """The hook that hatchling calls while it makes a wheel."""

    def dependencies(self) -> list[str]:
        """What pip must bring before the build: nothing at all for a pure one."""
        if _kind() == "pure":
            return []
        needs: list[str] = _project(Path(self.root))["dependency-groups"]["compiler"]
        return needs

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the extension modules to the wheel, if this build is to have any."""
        if version == "editable" or _kind() == "pure":
            return
        try:
            files = compiled_or_why_not(Path(self.root), self._work())
        except NotCompiled as reason:
            self._tidy()
            if _kind() == "compiled":
                raise RuntimeError(f"ZENLAKE_BUILD=compiled, but {reason}") from reason
            self.app.display_warning(
                f"zenlake: {reason}: building the pure wheel, which works the same, slower. "
                "ZENLAKE_BUILD=compiled makes this an error."
            )
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["force_include"].update(files)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Throw the temporary folder away."""
        self._tidy()

    _temporary: tempfile.TemporaryDirectory[str] | None = None

    def _tidy(self) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def _work(self) -> Path:
        kept = os.environ.get("ZENLAKE_BUILD_DIR")
        if kept:
            return Path(kept).absolute()
        self._temporary = tempfile.TemporaryDirectory(prefix="zenlake-build-")
        return Path(self._temporary.name)


_printed = 0.0


def _progress(text: str) -> None:
    """Show how far the build is: in one line of a terminal, or now and then in a log."""
    global _printed
    file = os.environ.get("ZENLAKE_BUILD_PROGRESS")
    if file and text:
        Path(file).write_text(text)
    if sys.stderr.isatty():
        print(f"\r\033[K  {text}", end="", file=sys.stderr, flush=True)
    elif text and time.monotonic() - _printed >= PRINT_EVERY_SECONDS:
        _printed = time.monotonic()
        print(f"  {text}", file=sys.stderr, flush=True)


def _kind() -> str:
    kind = os.environ.get("ZENLAKE_BUILD", "")
    if kind not in KINDS:
        raise ValueError(f"ZENLAKE_BUILD={kind!r}: write 'compiled' or 'pure', or leave it unset")
    return kind


def _project(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


@contextlib.contextmanager
def _inside(root: Path) -> Iterator[None]:
    """Work from `root`, with our own arguments hidden from setuptools and mypy."""
    here, arguments, path = Path.cwd(), sys.argv, os.environ.get("MYPYPATH")
    os.chdir(root)
    os.environ["MYPYPATH"] = SOURCE
    sys.argv = ["build"]
    try:
        yield
    finally:
        sys.argv = arguments
        if path is None:
            del os.environ["MYPYPATH"]
        else:
            os.environ["MYPYPATH"] = path
        os.chdir(here)
