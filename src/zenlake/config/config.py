"""The configuration that a program holds and changes; the same calls as Eclipse Zenoh's."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from typing import TYPE_CHECKING, ClassVar, cast

from zenlake.config.declare import Section, section_of
from zenlake.config.environment import (
    CONFIG_VARIABLE,
    configured_file,
    decode,
    read_file,
    suffix_of,
)
from zenlake.config.json5 import Plain, write_json
from zenlake.config.load import (
    Tree,
    changed,
    default_tree,
    insert,
    is_honoured,
    look_up,
    read_named_tree,
    remove,
    segments,
)
from zenlake.config.model import Settings
from zenlake.config.problem import ConfigWarning, Problem
from zenlake.config.shape import Mode
from zenlake.config.unapplied import unapplied
from zenlake.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Config"]

_FORMATS = {".json": False, ".json5": False, ".yaml": True, ".yml": True}
_MASK = "***"
# Compiled when they are used: most programs never show their configuration.
_SECRET_NAME = "(?i)password|secret|private|token|credential"
_SECRET_IN_URL = r"(://[^/:@\s]*:)[^/@\s]*@"
_SECRET_IN_ENDPOINT = r"(?i)((?:password|private_key_base64)=)[^;]*"


class Config:
    """How a node should behave: Eclipse Zenoh's configuration, validated as it is written.

    A program fills it with JSON5 (`insert_json5`); the node reads `resolved`, where every key has
    its type and the value that holds for the node's mode. A key that is accepted but has no
    effect yet says so once, with a `ConfigWarning`.
    """

    __slots__ = ("_named", "_tree", "_warned")

    DEFAULT_CONFIG_PATH_ENV: ClassVar[str] = CONFIG_VARIABLE

    def __init__(self) -> None:
        """Start with all defaults."""
        self._tree: Tree = default_tree()
        self._named: frozenset[str] = frozenset()
        self._warned: frozenset[str] = frozenset()

    @classmethod
    def from_env(cls) -> Config:
        """Read the file that the variable `ZENOH_CONFIG` names."""
        named = configured_file()
        if not named:
            raise ConfigError(f"{CONFIG_VARIABLE} is not set; set it to the path of a file")
        return cls._of(*cls._read(named, read_file(named)))

    @classmethod
    def from_file(cls, path: str | Path) -> Config:
        """Read a file: JSON5 or JSON, or YAML if PyYAML is installed, by its extension.

        Args:
            path: A file whose name ends in .json5, .json, .yaml or .yml.
        """
        return cls._of(*cls._read(str(path), read_file(path)))

    @classmethod
    def from_json5(cls, json: str) -> Config:
        """Read a whole configuration from JSON5 text.

        Args:
            json: The configuration as JSON5 text.
        """
        return cls._of(*read_named_tree(json))

    @classmethod
    def from_bytes(cls, data: bytes, source: str) -> Config:
        """Read JSON5 that has no file; problems are reported as being in `source`.

        Args:
            data: The configuration as JSON5, in UTF-8.
        """
        return cls._of(*read_named_tree(decode(data, source), source))

    @staticmethod
    def _read(path: str, text: str) -> tuple[Tree, frozenset[str]]:
        suffix = suffix_of(path)
        if suffix not in _FORMATS:
            kind = f"'{suffix}' is not a kind" if suffix else "the name does not say which kind"
            raise ConfigError(f"{path}: {kind} of file is read; name it .json5, .json or .yaml")
        return read_named_tree(text, path, yaml=_FORMATS[suffix])

    @classmethod
    def _of(cls, tree: Tree, named: frozenset[str]) -> Config:
        config = cls()
        config._tree = tree
        config._named = named
        config._warn(stacklevel=4)
        config._warn_of_unapplied(stacklevel=4)
        return config

    def get_json(self, /, key: str) -> str:
        """The JSON text of what is at `key`, with the defaults where nothing was written."""
        return _json(look_up(self._tree, key))

    def shown_json(self, key: str) -> str:
        """The same for others to read: without secrets; an empty `key` is the whole of it."""
        if key:
            return _json(masked(key, look_up(self._tree, key)))
        return _json({name: masked(name, value) for name, value in self._tree.items()})

    def insert_json5(self, /, key: str, value: str) -> None:
        """Put a JSON5 text at `key` in place of what was there; if refused, nothing changes.

        Args:
            value: A JSON5 value.
        """
        if not isinstance(value, str):
            raise TypeError(f"{value!r} is no JSON5 text; write {write_json(value)!r}")
        self._tree = insert(self._tree, key, value)
        where = segments(key)
        self._named |= {"/".join(where[:depth]) for depth in range(1, len(where) + 1)}
        self._warn(stacklevel=3)
        if key.strip("/") == "access_control":  # its parts may come one after the other
            self._warn_of_unapplied(stacklevel=3)

    def remove(self, key: str) -> None:
        """Take the value at a path away: it has its default again, and a free member is gone.

        Args:
            key: A path such as `connect/endpoints`.
        """
        self._tree = remove(self._tree, key)

    @property
    def mode(self) -> Mode:
        """What the node is: router, peer or client."""
        return cast(Mode, self._tree["mode"] or "peer")

    @property
    def resolved(self) -> Settings:
        """What holds for a node of this configuration's mode."""
        return self.for_mode(self.mode)

    def for_mode(self, mode: Mode) -> Settings:
        """What would hold for a node of another mode.

        Args:
            mode: What kind of node it is for.
        """
        return cast(Settings, section_of(Settings).build({**self._tree, "mode": mode}, mode))

    def not_honoured(self) -> tuple[str, ...]:
        """The keys that were given a value which has no effect yet."""
        return tuple(path for path, key in changed(self._tree) if not is_honoured(path, key))

    def names(self, path: str) -> bool:
        """Return True if this key was read or inserted, be it with its default value.

        Args:
            path: A path such as `adminspace/permissions/write`.
        """
        return "/".join(segments(path)) in self._named

    def unapplied(self) -> tuple[Problem, ...]:
        """The rules and subjects of access control that no policy names, and what that means."""
        return unapplied(self._tree["access_control"])

    def _warn_of_unapplied(self, stacklevel: int) -> None:
        for problem in self.unapplied():
            warnings.warn(problem.sentence(), ConfigWarning, stacklevel=stacklevel)

    def _warn(self, stacklevel: int) -> None:
        idle = [path for path in self.not_honoured() if path not in self._warned]
        if idle:
            self._warned = self._warned.union(idle)
            warnings.warn(
                f"accepted, but without effect yet: {', '.join(idle)}",
                ConfigWarning,
                stacklevel=stacklevel,
            )

    def __copy__(self) -> Config:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, object]) -> Config:
        other = type(self)()
        other._tree = deepcopy(self._tree, memo)
        other._named = self._named
        other._warned = self._warned
        return other

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and other._tree == self._tree

    # It can change, so it has no hash.
    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        """The whole configuration as JSON, secrets included: `from_json5` reads it back."""
        return _json(self._tree)

    def __repr__(self) -> str:
        """What differs from the defaults, with secrets masked."""
        written = {path: look_up(self._tree, path) for path, _ in changed(self._tree)}
        shown = ", ".join(f"{path}={_json(masked(path, value))}" for path, value in written.items())
        return f"Config({shown})"


def _json(plain: Plain) -> str:
    return write_json(plain, compact=True)


def _secret_names(section: Section) -> frozenset[str]:
    names: set[str] = set()
    for key in section.keys.values():
        if isinstance(key.shape, Section):
            names |= _secret_names(key.shape)
        elif key.secret:
            names.add(key.name)
    return frozenset(names)


@cache
def _secrets() -> frozenset[str]:
    return _secret_names(section_of(Settings))


def masked(path: str, value: Plain) -> Plain:
    """The value with what nobody should read in a log put out of sight."""
    name = path.rpartition("/")[2]
    free = path.startswith(("plugins/", "metadata"))
    if name in _secrets() or (free and re.search(_SECRET_NAME, name)):
        return _MASK
    if isinstance(value, Mapping):
        return {member: masked(f"{path}/{member}", inner) for member, inner in value.items()}
    if isinstance(value, list):
        return [masked(path, item) for item in value]
    if isinstance(value, str):
        value = re.sub(_SECRET_IN_URL, rf"\1{_MASK}@", value)
        return re.sub(_SECRET_IN_ENDPOINT, rf"\1{_MASK}", value)
    return value
