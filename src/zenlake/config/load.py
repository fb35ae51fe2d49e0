"""From text and paths to a complete, valid tree of plain JSON.

The tree has every key of the model, those written and the defaults of the others, in the form
that `get_json` shows. Paths name keys in it: `transport/link/tx/lease`, or with dots. Below a key
that may be written by mode, a path may go on with the mode: `listen/endpoints/router`.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from functools import cache

from zenlake.config.declare import Key, Section, misplaced, section_of
from zenlake.config.json5 import Located, Plain, Unreadable, read_json5, write_json
from zenlake.config.model import Settings
from zenlake.config.nearest import nearest
from zenlake.config.problem import InvalidConfig, Problem, Report
from zenlake.config.shape import MODES, FreeForm, Path
from zenlake.config.yaml_text import read_yaml

__all__ = [
    "all_keys",
    "changed",
    "default_tree",
    "insert",
    "is_honoured",
    "look_up",
    "read_named_tree",
    "read_tree",
    "remove",
    "segments",
]

Tree = dict[str, Plain]


@cache
def all_keys() -> dict[str, Key]:
    """Every key that has a name of its own, by path, in the order of the model."""
    return dict(_keys_below(section_of(Settings), ()))


def _keys_below(section: Section, path: Path) -> Iterator[tuple[str, Key]]:
    for key in section.keys.values():
        below = (*path, key.name)
        yield "/".join(below), key
        if isinstance(key.shape, Section):
            yield from _keys_below(key.shape, below)


@cache
def _paths() -> tuple[str, ...]:
    return tuple(all_keys())


def default_tree() -> Tree:
    """The tree in which nothing was written."""
    return section_of(Settings).written()


def read_tree(text: str, source: str = "", *, yaml: bool = False) -> Tree:
    """Read a whole configuration; raises `InvalidConfig` with all that is wrong with it."""
    return read_named_tree(text, source, yaml=yaml)[0]


def read_named_tree(
    text: str, source: str = "", *, yaml: bool = False
) -> tuple[Tree, frozenset[str]]:
    """The same, with the paths of all keys that the text names, those with their defaults too."""
    node = _parse(text, source, yaml=yaml)
    report = Report(text, source, _paths())
    tree = section_of(Settings).read(node, (), report)
    report.close()
    if not isinstance(tree, dict):
        raise TypeError("a configuration is an object")
    return tree, frozenset(_named_below(node, ""))


def _named_below(node: Located, path: str) -> Iterator[str]:
    if isinstance(node.value, dict):
        for name, member in node.value.items():
            below = f"{path}/{name}" if path else name
            yield below
            yield from _named_below(member, below)


def insert(tree: Tree, path: str, text: str) -> Tree:
    """The tree with the JSON5 `text` put at `path`; whatever was there is replaced."""
    where = segments(path)
    name = "/".join(where)
    try:
        node = _parse(text, "", nesting=len(where))
    except InvalidConfig as error:
        problem = error.problems[0]
        message = f"{problem.message} (line {problem.line}, column {problem.column} of the value)"
        raise InvalidConfig((Problem(name, message),)) from None
    key, rest = _resolve(where)
    report = Report(paths=_paths())
    if isinstance(key.shape, FreeForm):
        value = node.plain() if rest else key.read(node, where, report)
    elif rest:
        value = key.shape.read(node, where, report)
    else:
        value = key.read(node, where, report)
    # A value has no file: where it stood in its own short text helps nobody.
    report.problems = [Problem(problem.path, problem.message) for problem in report.problems]
    report.close()
    changed_tree = deepcopy(tree)
    _put(changed_tree, where, len(where) - len(rest), key, value)
    if rest and isinstance(key.shape, FreeForm) and key.shape.known:
        _check_known(changed_tree, key, where[: len(where) - len(rest)])
    return changed_tree


def remove(tree: Tree, path: str) -> Tree:
    """The tree without what was written at `path`: the default, or no such free member."""
    where = segments(path)
    key, rest = _resolve(where)
    if not (rest and isinstance(key.shape, FreeForm)):
        return insert(tree, path, write_json(look_up(default_tree(), path)))
    changed_tree = deepcopy(tree)
    at: Plain = changed_tree
    for name in where[:-1]:
        at = at.get(name) if isinstance(at, dict) else None
    if not isinstance(at, dict) or where[-1] not in at:
        raise InvalidConfig((Problem("/".join(where), "nothing is written there"),))
    del at[where[-1]]
    if key.shape.known:
        _check_known(changed_tree, key, where[: len(where) - len(rest)])
    return changed_tree


def is_honoured(path: str, key: Key) -> bool:
    """Whether something obeys what was written at a path."""
    if key.honoured_by is not None:
        return True
    return isinstance(key.shape, FreeForm) and path.rpartition("/")[2] in key.shape.known


def _check_known(tree: Tree, key: Key, where: Path) -> None:
    """Check a value as a whole after a change somewhere inside it, and make it complete."""
    report = Report(paths=_paths())
    node = read_json5(write_json(look_up(tree, "/".join(where))))
    value = key.read(node, where, report)
    report.problems = [Problem(problem.path, problem.message) for problem in report.problems]
    report.close()
    _put(tree, where, len(where), key, value)


def look_up(tree: Tree, path: str) -> Plain:
    """What the tree holds at `path`."""
    where = segments(path)
    key, rest = _resolve(where)
    value: Plain = tree
    for name in where:
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif rest and key.by_mode and not isinstance(value, dict):
            return value  # one value for every mode, hence for the one asked for
        elif isinstance(key.shape, FreeForm) and rest:
            raise InvalidConfig((Problem("/".join(where), "nothing is written there"),))
        else:
            return None if rest else key.written()
    return value


def changed(tree: Tree) -> list[tuple[str, Key]]:
    """The keys whose value differs from what it is when nothing is written."""
    return list(_changed(section_of(Settings), tree, ()))


def _changed(section: Section, tree: Tree, path: Path) -> Iterator[tuple[str, Key]]:
    for key in section.keys.values():
        value = tree.get(key.name)
        below = (*path, key.name)
        if value is None or value == (None if key.required else key.written()):
            continue
        if isinstance(key.shape, Section) and isinstance(value, dict):
            yield from _changed(key.shape, value, below)
        elif isinstance(key.shape, FreeForm) and key.shape.members and isinstance(value, dict):
            for name in value:
                yield "/".join((*below, name)), key
        else:
            yield "/".join(below), key


def segments(path: str) -> Path:
    """The names in a path: those between slashes, or between dots if it has no slash."""
    where = tuple(name for name in path.split("/" if "/" in path else ".") if name)
    if not where:
        raise InvalidConfig((Problem("", f"{path!r} names no key; write 'mode'"),))
    return where


def _parse(text: str, source: str, *, yaml: bool = False, nesting: int = 0) -> Located:
    try:
        return read_yaml(text) if yaml else read_json5(text, nesting)
    except Unreadable as error:
        report = Report(text, source)
        report.add((), error.message, error.offset)
        report.close()
        raise AssertionError from None


def _resolve(where: Path) -> tuple[Key, Path]:
    """The key that a path leads to, and what is left of the path inside its value."""
    section = section_of(Settings)
    for depth, name in enumerate(where):
        if name not in section.keys:
            raise _unknown(where, section, depth)
        key = section.keys[name]
        rest = where[depth + 1 :]
        if not rest or isinstance(key.shape, FreeForm):
            return key, rest
        if key.by_mode and len(rest) == 1 and rest[0] in MODES:
            return key, rest
        if not isinstance(key.shape, Section):
            above = "/".join(where[: depth + 1])
            raise InvalidConfig((Problem("/".join(where), f"'{above}' has no keys below it"),))
        section = key.shape
    raise AssertionError("a path has a name")


def _unknown(where: Path, section: Section, depth: int) -> InvalidConfig:
    """Say which key was probably meant, mending one name after the other."""
    mended: list[str] = list(where[:depth])
    at: Section | None = section
    for name in where[depth:]:
        best = nearest(name, at.keys) if at is not None else None
        if at is not None and name in at.keys:
            best = name
        if at is None or best is None:
            break
        mended.append(best)
        below = at.keys[best].shape
        at = below if isinstance(below, Section) else None
    hint = "/".join(mended) if len(mended) == len(where) else misplaced(where, _paths())
    meant = f"; did you mean '{hint}'?" if hint else ""
    return InvalidConfig((Problem("/".join(where), f"unknown key{meant}"),))


def _put(tree: Tree, where: Path, named: int, key: Key, value: Plain) -> None:
    """Put the value in place; `named` segments of the path lead through keys of the model."""
    at = tree
    section = section_of(Settings)
    for name in where[: named - 1]:
        shape = section.keys[name].shape
        if not isinstance(shape, Section):
            raise TypeError(f"{name} is no section")
        section = shape
        below = at.get(name)
        if not isinstance(below, dict):
            below = section.written()  # an optional section comes to be with its first key
            at[name] = below
        at = below
    inside = where[named:]
    name = where[named - 1]
    if not inside:
        at[name] = value
        return
    held = at.get(name)
    if key.by_mode and not isinstance(held, dict):
        held = {} if held is None else {mode: deepcopy(held) for mode in MODES}
    for step in inside[:-1]:
        if not isinstance(held, dict):
            held = {}
        at[name] = held
        at, name, held = held, step, held.get(step)
    if not isinstance(held, dict):
        held = {}
    at[name] = held
    held[inside[-1]] = value
