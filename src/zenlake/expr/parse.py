"""From text to a tree: the filter grammar of DDS (OMG DDS, annex B).

    condition   predicate · condition AND condition · condition OR condition · NOT condition · (…)
    predicate   term op term · field [NOT] BETWEEN term AND term
    op          = > >= < <= <> LIKE
    term        field · integer · 0x… · float · 'text' · %0 … %99

Keywords are read in any case, names as they are. NOT binds before AND, AND before OR.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from zenlake.expr.tree import (
    And,
    Between,
    Comparison,
    ExprError,
    Field,
    Literal,
    Node,
    Not,
    Or,
    Parameter,
    Term,
    Unsupported,
)

#: Characters of a predicate, and how deep its parentheses go.
TEXT_MAX: Final = 4096
DEPTH_MAX: Final = 32

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<float>[+-]?(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?\d+[eE][+-]?\d+)"
    r"|(?P<hex>[+-]?0[xX][0-9a-fA-F]+)|(?P<int>[+-]?\d+)"
    r"|(?P<text>'(?:[^']|'')*'|`[^']*')|(?P<parameter>%\d{1,2})"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*(?:\[\d+\])?(?:\.[A-Za-z_][A-Za-z0-9_]*(?:\[\d+\])?)*)"
    r"|(?P<op><>|!=|<=|>=|=|<|>)|(?P<bracket>[()])|(?P<comma>,))"
)
_KEYWORDS: Final = frozenset({"AND", "OR", "NOT", "BETWEEN", "LIKE"})


@lru_cache(maxsize=256)
def parse(text: str) -> Node:
    """The tree of a predicate; raises `ExprError` with the place where it goes wrong."""
    if len(text) > TEXT_MAX:
        raise ExprError(f"a predicate of {len(text)} characters: at most {TEXT_MAX}")
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str, int]] = []
        self._place = 0
        self._depth = 0
        at = 0
        while at < len(text.rstrip()):
            found = _TOKEN.match(text, at)
            if found is None or found.lastgroup is None:
                raise ExprError(f"'{text}': nothing of the language begins at character {at + 1}")
            kind, word = found.lastgroup, found[found.lastgroup]
            if kind == "name" and word.upper() in _KEYWORDS:
                kind, word = "keyword", word.upper()
            self._tokens.append((kind, word, found.start(found.lastgroup)))
            at = found.end()
        self._tokens.append(("end", "", len(text)))

    def whole(self) -> Node:
        node = self._or()
        if self._tokens[self._place][0] != "end":
            raise self._error("an AND, an OR, or the end")
        return node

    def _next(self) -> tuple[str, str, int]:
        token = self._tokens[self._place]
        self._place += 1
        return token

    def _taken(self, kind: str, word: str) -> bool:
        if self._tokens[self._place][:2] == (kind, word):
            self._place += 1
            return True
        return False

    def _error(self, wanted: str) -> ExprError:
        kind, word, at = self._tokens[self._place]
        found = "the end" if kind == "end" else f"'{word}'"
        return ExprError(f"'{self._text}': {found} at character {at + 1}, instead of {wanted}")

    def _or(self) -> Node:
        nodes = [self._and()]
        while self._taken("keyword", "OR"):
            nodes.append(self._and())
        return nodes[0] if len(nodes) == 1 else Or(tuple(nodes))

    def _and(self) -> Node:
        nodes = [self._not()]
        while self._taken("keyword", "AND"):
            nodes.append(self._not())
        return nodes[0] if len(nodes) == 1 else And(tuple(nodes))

    def _not(self) -> Node:
        negations = 0
        while self._taken("keyword", "NOT"):
            negations += 1
        node = self._condition()
        return Not(node) if negations % 2 else node

    def _condition(self) -> Node:
        if not self._taken("bracket", "("):
            return self._predicate()
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise ExprError(f"parentheses deeper than {DEPTH_MAX}")
        node = self._or()
        if not self._taken("bracket", ")"):
            raise self._error("')'")
        self._depth -= 1
        return node

    def _predicate(self) -> Node:
        left = self._term()
        negated = self._taken("keyword", "NOT")
        if self._taken("keyword", "BETWEEN"):
            if not isinstance(left, Field):
                raise ExprError(f"'{self._text}': BETWEEN asks about a field, not {left.sql()}")
            low = self._term()
            if not self._taken("keyword", "AND"):
                raise self._error("AND")
            return Between(left, low, self._term(), negated)
        if negated:
            raise self._error("BETWEEN")
        kind, word, _ = self._tokens[self._place]
        if kind != "op" and (kind, word) != ("keyword", "LIKE"):
            raise self._error("a comparison")
        self._place += 1
        right = self._term()
        if not isinstance(left, Field) and not isinstance(right, Field):
            raise ExprError(
                f"'{self._text}': {left.sql()} {word} {right.sql()} asks about no field"
            )
        return Comparison(left, "<>" if word == "!=" else word, right)

    def _term(self) -> Term:
        kind, word, _ = self._tokens[self._place]
        match kind:
            case "name":
                self._place += 1
                if self._tokens[self._place][1] == "(":
                    raise Unsupported(
                        f"'{self._text}': the function {word}() is not part of the language"
                    )
                return Field(word)
            case "int":
                self._place += 1
                return Literal(int(word))
            case "hex":
                self._place += 1
                return Literal(int(word, 16))
            case "float":
                self._place += 1
                return Literal(float(word))
            case "text":
                self._place += 1
                return Literal(word[1:-1].replace("''", "'"))
            case "parameter":
                self._place += 1
                return Parameter(int(word[1:]))
            case _:
                raise self._error("a field or a value")
