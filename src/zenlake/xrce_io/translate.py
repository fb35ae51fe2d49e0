"""Names of 2018 as key expressions of Zenoh 1.x, and back.

Wildcards of 2018 work on characters, those of 1.x on chunks: `**` between slashes is at least one
chunk there and any number here. `?` has no counterpart: the wider `$*` is asked for, and what does
not fit is left to the matcher of 2018.

    >>> from zenlake.xrce_io.translate import key_exprs, paths
    >>> key_exprs("house/**/light"), key_exprs("house/b?d*")
    (['house/*/**/light'], ['house/b$*d$*'])
    >>> key_exprs("a**b")
    ['a$*/**/$*b', 'a$*b']
    >>> paths("house/**")
    ['house', 'house/**']
"""

from __future__ import annotations

import itertools

from zenlake.errors import KeyExprError
from zenlake.keys import KeyExpr

#: Key expressions that one name may take; `**` inside a chunk doubles them.
MOST = 16


def key_exprs(path: str) -> list[str]:
    """The key expressions that together mean what a 2018 path means, or a little more."""
    choices: list[list[str]] = []
    if path == "**":
        return ["**"]
    for chunk in path.split("/"):
        if chunk == "**":
            choices.append(["*/**"])
        elif "**" in chunk:
            parts = [_chunk(part) for part in chunk.split("**")]
            exprs = [parts[0]]
            for part in parts[1:]:
                exprs = [one + joint + part for one in exprs for joint in ("$*", "$*/**/$*")][:MOST]
            choices.append(exprs)
        else:
            choices.append([_chunk(chunk)])
    combined = itertools.islice(itertools.product(*choices), MOST)
    return sorted({str(KeyExpr.autocanonize("/".join(words))) for words in combined})


def _chunk(chunk: str) -> str:
    text = chunk.replace("?", "*")
    while "**" in text:
        text = text.replace("**", "*")
    return text if text == "*" else text.replace("*", "$*")


def is_key(path: str) -> bool:
    """Whether what a 2018 path names can be named in 1.x."""
    if any(chunk.startswith("@") for chunk in path.split("/")):
        return False
    try:
        key_exprs(path)
    except KeyExprError:
        return False
    return True


def paths(key_expr: str) -> list[str]:
    """The 2018 paths that together mean what a key expression means; empty: none can."""
    chunks = key_expr.split("/")
    if any(chunk.startswith("@") for chunk in chunks):
        return []
    if key_expr == "**":
        return ["**"]
    choices = [
        [(), ("**",)] if chunk == "**" else [(chunk.replace("$*", "*"),)] for chunk in chunks
    ]
    paths: list[str] = []
    for words in itertools.islice(itertools.product(*choices), MOST):
        text = "/".join(word for part in words for word in part)
        if text and text not in paths:
            paths.append(text)
    return paths
