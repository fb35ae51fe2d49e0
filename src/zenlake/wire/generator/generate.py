"""From declarations to code: writes the `codec_*.py` files and `numbers.py`.

The generated text is what a careful person would type: straight-line, typed, readable, and
compiled like any other module. `python -m zenlake.wire.generator.generate` writes the files;
`--check` says which are stale.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

from zenlake.wire.declared.schema import Many, Messages, OneOf, ProtocolPage
from zenlake.wire.generator.emit import snake
from zenlake.wire.generator.emit_class import ClassText
from zenlake.wire.generator.emit_head import head_text, numbers_text
from zenlake.wire.generator.emit_marked import marked_reader_text
from zenlake.wire.generator.emit_reader import reader_text, skipper_text, union_reader_text

#: Every page of declarations: where it is, and the package of its codec. Named, not imported:
#: the 2018 protocol stands on this package, so nothing here may lean on it.
PAGES = {
    "zenlake.wire.declared.zenoh": "zenlake.wire",
    "zenlake.wire.declared.declare": "zenlake.wire",
    "zenlake.wire.declared.network": "zenlake.wire",
    "zenlake.wire.declared.transport": "zenlake.wire",
    "zenlake.wire.declared.scouting": "zenlake.wire",
    "zenlake.xrce.declared": "zenlake.xrce",
}

HEAD = '''"""{title} of Zenoh {protocol}: classes and codec.

Generated from `{source}` by `make wire`. Do not edit: change the declarations.
"""

# ruff: noqa: SIM102, SIM103, PLR, E501

from __future__ import annotations

from typing import ClassVar

'''


def union_name(names: tuple[str, ...], owner: str) -> str:
    """How the reader of one of several messages is called."""
    if len(names) == 1:
        return f"one_{snake(names[0])}"
    if len(names) > 3:
        return f"{snake(owner)}_body"
    return "_or_".join(snake(name) for name in names)


def unions_of(page: ProtocolPage) -> dict[str, tuple[str, ...]]:
    """The unions that a page reads, by the name of their reader."""
    unions: dict[str, tuple[str, ...]] = {}
    for spec in page.specs.values():
        for field in spec.fields:
            kind = field.kind.item if isinstance(field.kind, Many) else field.kind
            if isinstance(kind, OneOf):
                unions[union_name(kind.names, spec.name)] = kind.names
    return unions


def roots_of(page: ProtocolPage) -> tuple[str, ...]:
    """The messages that may stand alone on this page."""
    return tuple(
        name
        for name, spec in page.specs.items()
        if spec.id >= 0 and not spec.inner and not spec.marker
    )


def module_of(page: ProtocolPage, package: str) -> str:
    """The generated module of a page."""
    return f"{package}.codec_{page.name}" if page.protocol == "1.x" else f"{package}.codec"


def codec_text(page: ProtocolPage, package: str, source: str) -> str:
    """The generated module, unformatted."""
    body: list[str] = []
    names = {name: page.find(name) for p in page.closure() for name in p.specs}
    unions = unions_of(page)
    for spec in page.specs.values():
        body.append(ClassText(spec, names, union_name).text())
        body.append(reader_text(spec, names, union_name))
        if page.protocol == "1.x":
            body.append(skipper_text(spec, names, union_name))
        if spec.head:
            body.append(head_text(spec, names, union_name))
    for reader, members in unions.items():
        if any(reader in unions_of(other) for other in page.closure()[1:]):
            continue
        specs = [page.find(name) for name in members]
        body.append(union_reader_text(reader, specs, skip=page.protocol == "1.x"))
    if page.markers:
        body.append(marked_reader_text([page.specs[name] for name in roots_of(page)], page.specs))
    elif page.name not in ("zenoh", "declare"):
        specs = [page.specs[name] for name in roots_of(page)]
        body.append(union_reader_text(page.name, specs, skip=page.name == "network"))
    text = "\n\n".join(body)
    return (
        HEAD.format(title=page.title, protocol=page.protocol, source=source)
        + imports(page, package, text)
        + "\n\n"
        + text
    )


def imports(page: ProtocolPage, package: str, text: str) -> str:
    """The imports that the text needs, one line a module."""
    wanted: dict[str, list[str]] = {}

    def offer(module: str, *candidates: str) -> None:
        used = [name for name in candidates if re.search(rf"(?<![\w.\"]){name}\b", text)]
        if used:
            wanted.setdefault(module, []).extend(used)

    offer("zenlake.errors", "DecodeError", "EncodeError")
    offer("zenlake.wire.cursor", "Reader", "Writer")
    offer("zenlake.wire.message", "Message", "UnknownExtension", "keep_extension", "zid_text")
    for other in page.closure()[1:]:
        offered = [
            *other.specs,
            *[f"{verb}_{snake(name)}" for name in other.specs for verb in ("read", "skip")],
        ]
        offered += [f"{verb}_{union}" for union in unions_of(other) for verb in ("read", "skip")]
        if any(isinstance(f.kind, Messages) for s in page.specs.values() for f in s.fields):
            offered += (
                [f"read_{other.name}", f"skip_{other.name}"] if other.name == "network" else []
            )
        offer(module_of(other, package), *offered)
    return "".join(
        f"from {module} import {', '.join(sorted(set(used)))}\n" for module, used in wanted.items()
    )


def formatted(text: str, path: Path) -> str:
    """The text in house style."""
    import subprocess

    command = [sys.executable, "-m", "ruff"]
    options = ["--stdin-filename", str(path), "-"]
    for step in (
        ["check", "--fix-only", "--quiet", "--select", "I,F401,UP"],
        ["format", "--quiet"],
    ):
        run = subprocess.run(
            [*command, *step, *options], input=text, capture_output=True, text=True
        )
        if run.returncode:
            raise RuntimeError(f"ruff refused {path}: {run.stderr}")
        text = run.stdout
    return text


def outputs() -> dict[Path, str]:
    """Every generated file of both protocols, with its text."""
    root = Path(__file__).parents[2]
    files: dict[Path, str] = {}
    pages: list[ProtocolPage] = []
    for module, package in PAGES.items():
        page: ProtocolPage = importlib.import_module(module).PAGE
        if page.protocol == "1.x":
            pages.append(page)
        path = root / f"{inside(module_of(page, package))}.py"
        files[path] = formatted(codec_text(page, package, f"{inside(module)}.py"), path)
    path = root / "wire" / "numbers.py"
    files[path] = formatted(numbers_text(pages), path)
    return files


def inside(module: str) -> str:
    """The path of a module inside the package `zenlake`, without its ending."""
    return module.removeprefix("zenlake.").replace(".", "/")


def main(arguments: list[str]) -> int:
    """Write the files, or with `--check` tell which are stale."""
    stale = [
        path for path, text in outputs().items() if not path.exists() or path.read_text() != text
    ]
    if "--check" in arguments:
        for path in stale:
            print(f"{path} is stale: run `make wire`")
        return 1 if stale else 0
    for path, text in outputs().items():
        if path in stale:
            path.write_text(text)
            print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
