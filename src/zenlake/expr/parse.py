"""From text to a tree: the filter grammar of DDS (OMG DDS, annex B), and what SQL has beside it.

    condition   predicate · condition AND condition · condition OR condition · NOT condition · (…)
    predicate   term op term · term [NOT] BETWEEN term AND term · term [NOT] IN (term, …)
                term IS [NOT] NULL · term (if it is a truth value)
    op          = > >= < <= <> != LIKE
    term        field · integer · 0x… · float · 'text' · TRUE · FALSE · %0 … %99
                function(term, …) · term + - * / % term · (term) · -term

Keywords are read in any case, names as they are. NOT binds before AND, AND before OR.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from zenlake.errors import SelectorError
from zenlake.expr.tree import (
    FUNCTIONS,
    INSTANT,
    MOST_WILD,
    NUMBER,
    And,
    Arithmetic,
    Between,
    Comparison,
    ExprError,
    Field,
    Function,
    In,
    IsNull,
    Literal,
    Moment,
    Node,
    Not,
    Or,
    Parameter,
    Term,
    Unsupported,
    most_wild_of,
)
from zenlake.keys.time_range import Instant as Fixed
from zenlake.keys.time_range import Now, moment_of

#: Characters of a predicate, and how deep its parentheses go.
TEXT_MAX: Final = 4096
DEPTH_MAX: Final = 32
#: Values of an IN, and calculations of a predicate.
AMONG_MAX: Final = 256
CALCULATIONS_MAX: Final = 64
#: A thousand years in microseconds.
LONGEST: Final = 1000 * 366 * 86_400_000_000

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<float>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)"
    r"|(?P<hex>0[xX][0-9a-fA-F]+)|(?P<duration>\d+(?:ms|[usmhdw])\b)|(?P<int>\d+)"
    r"|(?P<text>'(?:[^']|'')*'|`[^']*')|(?P<parameter>%\d{1,2}(?!\d))"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*(?:\[\d+\])?(?:\.[A-Za-z_][A-Za-z0-9_]*(?:\[\d+\])?)*)"
    r"|(?P<op><>|!=|<=|>=|=|<|>)|(?P<sign>[-+*/%])|(?P<bracket>[()])|(?P<comma>,))"
)
_KEYWORDS: Final = frozenset(
    {"AND", "OR", "NOT", "BETWEEN", "LIKE", "IN", "IS", "NULL", "TRUE", "FALSE"}
)


@lru_cache(maxsize=256)
def parse(text: str) -> Node:
    """The tree of a predicate; raises `ExprError` with the place where it goes wrong."""
    if len(text) > TEXT_MAX:
        raise ExprError(f"a predicate of {len(text)} characters: at most {TEXT_MAX}")
    return _Parser(text).predicate()


@lru_cache(maxsize=256)
def parse_term(text: str) -> Term:
    """The tree of a value, such as `pose.x * 2`."""
    if len(text) > TEXT_MAX:
        raise ExprError(f"a term of {len(text)} characters: at most {TEXT_MAX}")
    return _Parser(text).term()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str, int]] = []
        self._place = 0
        self._depth = 0
        self._calculations = 0
        at = 0
        while at < len(text.rstrip()):
            match = _TOKEN.match(text, at)
            if match is None or match.lastgroup is None:
                raise ExprError(f"'{text}': nothing of the language begins at character {at + 1}")
            kind, word = match.lastgroup, match[match.lastgroup]
            if kind == "name" and word.upper() in _KEYWORDS:
                kind, word = "keyword", word.upper()
            self._tokens.append((kind, word, match.start(match.lastgroup)))
            at = match.end()
        self._tokens.append(("end", "", len(text)))

    def predicate(self) -> Node:
        node = self._or()
        if self._tokens[self._place][0] != "end":
            raise self._error("an AND, an OR, or the end")
        return node

    def term(self) -> Term:
        term = self._term()
        if self._tokens[self._place][0] != "end":
            raise self._error("an operator, or the end")
        return term

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
        got = "the end" if kind == "end" else f"'{word}'"
        return ExprError(f"'{self._text}': {got} at character {at + 1}, instead of {wanted}")

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
        if self._tokens[self._place][:2] != ("bracket", "("):
            return self._predicate()
        start = self._place
        self._place += 1
        self._deeper()
        try:
            node = self._or()
            if not self._taken("bracket", ")"):
                raise self._error("')'")
        except ExprError:
            # `(a + 1) * 2 > b` begins with a bracket, too.
            if not self._arithmetic(start):
                raise
            self._place = start
            self._depth -= 1
            return self._predicate()
        self._depth -= 1
        return node

    def _arithmetic(self, start: int) -> bool:
        """Whether what a bracket encloses is followed by an operator, and so is a term."""
        depth = 0
        for place in range(start, len(self._tokens)):
            kind, word, _ = self._tokens[place]
            depth += {"(": 1, ")": -1}.get(word, 0) if kind == "bracket" else 0
            if depth == 0:
                kind, word, _ = self._tokens[place + 1]
                return kind in ("op", "sign", "parameter") or word in (
                    "BETWEEN", "IN", "IS", "LIKE", "NOT",
                )  # fmt: skip
        return False

    def _predicate(self) -> Node:
        left = self._term()
        if self._taken("keyword", "IS"):
            negated = self._taken("keyword", "NOT")
            if not self._taken("keyword", "NULL"):
                raise self._error("NULL")
            return IsNull(self._asked(left, "IS NULL"), negated)
        negated = self._taken("keyword", "NOT")
        if self._taken("keyword", "BETWEEN"):
            self._asked(left, "BETWEEN")
            low = self._term()
            if not self._taken("keyword", "AND"):
                raise self._error("AND")
            high = self._term()
            left, low = self._alike(left, low)
            left, high = self._alike(left, high)
            return Between(left, low, high, negated)
        if self._taken("keyword", "IN"):
            return self._in(self._asked(left, "IN"), negated)
        if negated:
            raise self._error("BETWEEN or IN")
        kind, word, _ = self._tokens[self._place]
        if kind != "op" and (kind, word) != ("keyword", "LIKE"):
            if isinstance(left, Field) and (kind in ("end", "keyword") or word == ")"):
                return Comparison(left, "=", Literal(True))
            raise self._error("a comparison")
        self._place += 1
        right = self._term()
        if not _about_sample(left) and not _about_sample(right):
            raise ExprError(
                f"'{self._text}': {left.sql()} {word} {right.sql()} asks about no field"
            )
        if word != "LIKE":
            left, right = self._alike(left, right)
        elif (wild := most_wild_of(right)) > MOST_WILD:
            raise ExprError(
                f"LIKE {right.sql()[:40]}…: {wild} characters between two % with _ among them, "
                f"which is any character: at most {MOST_WILD}"
            )
        return Comparison(left, "<>" if word == "!=" else word, right)

    def _in(self, left: Term, negated: bool) -> Node:
        if not self._taken("bracket", "("):
            raise self._error("'('")
        among: list[Term] = []
        while True:
            left, one = self._alike(left, self._term())
            among.append(one)
            if self._taken("bracket", ")"):
                return In(left, tuple(among), negated)
            if len(among) >= AMONG_MAX:
                raise ExprError(f"'{self._text[:80]}…': more than {AMONG_MAX} values in IN")
            if not self._taken("comma", ","):
                raise self._error("',' or ')'")

    def _asked(self, left: Term, word: str) -> Term:
        if not _about_sample(left):
            raise ExprError(f"'{self._text}': {word} asks about a field, not {left.sql()}")
        return left

    def _alike(self, left: Term, right: Term) -> tuple[Term, Term]:
        """Two terms that are compared; a text beside an instant is read as one."""
        if left.kinds() == (INSTANT,):
            right = self._instant(right)
        elif right.kinds() == (INSTANT,):
            left = self._instant(left)
        if not set(left.kinds()) & set(right.kinds()):
            raise ExprError(
                f"'{self._text}': {left.sql()} is a {left.kinds()[0]} and {right.sql()} a "
                f"{right.kinds()[0]}; they cannot be compared"
            )
        return left, right

    def _instant(self, term: Term) -> Term:
        if not isinstance(term, Literal) or not isinstance(term.value, str):
            return term
        try:
            moment = moment_of(term.value)
        except SelectorError as error:
            raise ExprError(f"'{self._text}': {error}") from error
        if isinstance(moment, Fixed):
            return Moment(moment.ns // 1000, term.value)
        return Function("now", (Literal(f"{moment.offset_ns}ns"),))

    # --- terms ----------------------------------------------------------------------------------

    def _term(self) -> Term:
        return self._sum()

    def _sum(self) -> Term:
        left = self._product()
        while self._tokens[self._place][0] == "sign" and self._tokens[self._place][1] in "+-":
            _, sign, _ = self._next()
            left = self._calculated(left, sign, self._product())
        return left

    def _product(self) -> Term:
        left = self._factor()
        while (token := self._tokens[self._place])[:2] in _PRODUCTS or token[0] == "parameter":
            if token[0] == "parameter":
                # After a value, `%5` is no parameter but the remainder of a division by five.
                self._place += 1
                left = self._calculated(left, "%", Literal(int(token[1][1:])))
                continue
            self._place += 1
            left = self._calculated(left, token[1], self._factor())
        return left

    def _calculated(self, left: Term, sign: str, right: Term) -> Term:
        for one in (left, right):
            if NUMBER not in one.kinds():
                raise ExprError(f"'{self._text}': {one.sql()} is no number to calculate with")
        self._depth_check(left, right)
        return Arithmetic(left, sign, right)

    def _depth_check(self, *_: Term) -> None:
        self._calculations += 1
        if self._calculations > CALCULATIONS_MAX:
            raise ExprError(f"'{self._text[:80]}…': more than {CALCULATIONS_MAX} calculations")

    def _factor(self) -> Term:
        kind, word, _ = self._tokens[self._place]
        match kind:
            case "sign" if word in "+-":
                self._place += 1
                inner = self._factor()
                if isinstance(inner, Literal) and not isinstance(inner.value, str | bool):
                    return Literal(-inner.value) if word == "-" else inner
                return self._calculated(Literal(0), word, inner)
            case "name":
                self._place += 1
                if self._tokens[self._place][1] == "(":
                    return self._call(word)
                return Field(word)
            case "int" | "float" | "hex":
                self._place += 1
                return Literal(
                    float(word) if kind == "float" else int(word, 16 if kind == "hex" else 10)
                )
            case "text":
                self._place += 1
                return Literal(word[1:-1].replace("''", "'"))
            case "keyword" if word in ("TRUE", "FALSE"):
                self._place += 1
                return Literal(word == "TRUE")
            case "parameter":
                self._place += 1
                return Parameter(int(word[1:]))
            case "bracket" if word == "(":
                self._place += 1
                self._deeper()
                inner = self._term()
                self._depth -= 1
                if not self._taken("bracket", ")"):
                    raise self._error("')'")
                return inner
            case _:
                raise self._error("a field or a value")

    def _call(self, word: str) -> Term:
        name = word.lower()
        if name not in FUNCTIONS:
            raise Unsupported(f"'{self._text}': the function {word}() is not part of the language")
        self._place += 1  # the bracket
        if name == "now":
            return self._now()
        takes = FUNCTIONS[name].takes
        arguments: list[Term] = []
        self._deeper()
        while not self._taken("bracket", ")"):
            if arguments and not self._taken("comma", ","):
                raise self._error("',' or ')'")
            arguments.append(self._term())
        self._depth -= 1
        if len(arguments) != len(takes):
            raise ExprError(
                f"'{self._text}': {name}() takes {len(takes)} values, not {len(arguments)}"
            )
        for one, kinds in zip(arguments, takes, strict=True):
            is_int = isinstance(one, Literal) and isinstance(one.value, int)
            if FUNCTIONS[name].literal and not is_int:
                raise ExprError(f"'{self._text}': {name}() takes a whole number")
            if not set(one.kinds()) & set(kinds):
                raise ExprError(f"'{self._text}': {name}() takes a {kinds[0]}, not {one.sql()}")
        return Function(name, tuple(arguments))

    def _now(self) -> Term:
        """`now()`, `now(-10s)` or `now('-10s')`."""
        if self._taken("bracket", ")"):
            return Function("now")
        sign = ""
        kind, word, _ = self._next()
        if kind == "sign" and word in "+-":
            sign = word
            kind, word, _ = self._next()
        text = word[1:-1] if kind == "text" else word
        if kind not in ("text", "duration", "int", "float") or not self._taken("bracket", ")"):
            raise self._error("a duration such as -10s, and ')'")
        term = Function("now", (Literal(sign + text),))
        offset_of(term)
        return term

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise ExprError(f"parentheses deeper than {DEPTH_MAX}")


_PRODUCTS: Final = {("sign", "*"), ("sign", "/"), ("sign", "%")}


def _about_sample(term: Term) -> bool:
    match term:
        case Field() | Function():
            return True
        case Arithmetic():
            return _about_sample(term.left) or _about_sample(term.right)
    return False


def offset_of(term: Function) -> int:
    """How far from now a call of `now` is, in microseconds."""
    if not term.arguments:
        return 0
    (argument,) = term.arguments
    text = (
        argument.value if isinstance(argument, Literal) and isinstance(argument.value, str) else ""
    )
    if text.endswith("ns") and text[:-2].lstrip("-").isdigit():
        return int(text[:-2]) // 1000
    try:
        moment = moment_of(f"now({text})")
    except SelectorError as error:
        raise ExprError(f"'{term.sql()}': {error}") from error
    offset = moment.offset_ns // 1000 if isinstance(moment, Now) else 0
    if abs(offset) > LONGEST:
        raise ExprError(f"'{term.sql()}' is more than a thousand years away")
    return offset
