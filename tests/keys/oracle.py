"""Set semantics the slow way: every key over a tiny alphabet, and who it belongs to."""

from __future__ import annotations

import itertools
import re
from functools import cache

from hypothesis import strategies as st

from zenlake.keys.matching import canonize

# Enough chunks to tell every pattern below from every other, `x` standing for all the rest.
CONCRETE = ("a", "b", "ab", "x", "ax", "xb", "@a", "@$*")
DEPTH = 4
KEYS = ["/".join(key) for n in range(DEPTH + 1) for key in itertools.product(CONCRETE, repeat=n)]

# A text in which each chunk ends in a slash makes "any number of chunks" one regular expression.
_LINES = "\n".join([key + "/" if key else "" for key in KEYS])
_STARTS = {0: 0}
for _k, _key in enumerate(KEYS[:-1]):
    _STARTS[max(_STARTS) + len(_key + "/" if _key else "") + 1] = _k + 1


@cache
def keys_of(expr: str) -> int:
    """The keys that belong to `expr`, as the bits of an integer."""
    pattern = re.compile(f"^{''.join([_chunk(chunk) for chunk in expr.split('/')])}$", re.M)
    found = 0
    for match in pattern.finditer(_LINES):
        found |= 1 << _STARTS[match.start()]
    return found


def _chunk(chunk: str) -> str:
    if chunk == "**":
        return r"(?:[^@/\n][^/\n]*/)*"
    if chunk.startswith("@"):
        return re.escape(chunk) + "/"
    if chunk == "*":
        return r"[^@/\n][^/\n]*/"
    return "(?!@)" + r"[^/\n]*".join([re.escape(part) for part in chunk.split("$*")]) + "/"


ATOMS = ("a", "b", "*", "**", "a$*", "$*b", "@a", "@$*")


def all_expressions(longest: int) -> list[str]:
    """Every canonical expression of the atoms with at most `longest` chunks."""
    texts = {
        "/".join(chunks)
        for n in range(1, longest + 1)
        for chunks in itertools.product(ATOMS, repeat=n)
    }
    return sorted(text for text in texts if canonize(text) == text)


def expressions(longest: int = 6) -> st.SearchStrategy[str]:
    """Canonical expressions over a small alphabet, rich in wildcards."""
    pieces = st.lists(st.sampled_from(["a", "b", "@", "$*", "é"]), min_size=1, max_size=5)
    chunk = st.one_of(
        st.sampled_from(ATOMS), st.sampled_from(["**", "*", "c", "ab"]), pieces.map("".join)
    )
    return st.lists(chunk, min_size=1, max_size=longest).map("/".join).map(canonize)


def keys(longest: int = 6) -> st.SearchStrategy[str]:
    """Keys without wildcards."""
    chunk = st.sampled_from(["a", "b", "ab", "aab", "x", "@a", "@b", "c"])
    return st.lists(chunk, min_size=1, max_size=longest).map("/".join)
