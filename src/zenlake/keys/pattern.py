"""Key expressions as regular expressions, for those that know no others.

    a/**     (?:^|/)a(?:(?:^|/)(?!@)[^/]+)*

Python and Java read them alike. A chunk brings the slash before it, or is the first: so chunks are
translated one by one. They have no anchors; whoever searches writes `^` before and `END` after.
"""

from __future__ import annotations

import re
from typing import Final

from zenlake.keys.keyexpr import KeyExpr

__all__ = ["END", "pattern_of", "prefix_of", "spark_is_wild", "spark_pattern_of"]

#: The end of a text: `$` is also what stands before a last line break.
END: Final = r"(?![\s\S])"

_CHUNK: Final = "(?:^|/)"
# Chunks that begin with @ are met only by name.
_ONE: Final = f"{_CHUNK}(?!@)[^/]+"
_MANY: Final = f"(?:{_ONE})*"
_SOME: Final = "[^/]*"
_SPECIAL: Final = r"[\\.+*?()\[\]{}|^$#&~-]"
_ESCAPED_SOME: Final = r"\$\*"


def pattern_of(expr: str) -> str:
    """Return the regular expression of the keys that an expression means."""
    return "".join(map(_chunk, str(KeyExpr(expr)).split("/")))


def _chunk(chunk: str) -> str:
    if chunk in ("*", "**"):
        return _ONE if chunk == "*" else _MANY
    escaped = re.sub(_SPECIAL, r"\\\g<0>", chunk)
    if chunk.startswith("@"):
        return _CHUNK + escaped
    return f"{_CHUNK}(?!@){escaped.replace(_ESCAPED_SOME, _SOME)}"


def spark_pattern_of(column: str) -> str:
    """Return the same in Spark SQL, of the expressions in a column."""
    return f"""array_join(transform(split({column}, '/'), chunk -> CASE
        WHEN chunk = '*' THEN r'{_ONE}'
        WHEN chunk = '**' THEN r'{_MANY}'
        WHEN startswith(chunk, '@') THEN concat(r'{_CHUNK}', {_SPARK_ESCAPED})
        ELSE concat(r'{_CHUNK}(?!@)', replace({_SPARK_ESCAPED}, r'{_ESCAPED_SOME}', r'{_SOME}'))
        END), '')"""


_SPARK_ESCAPED: Final = rf"regexp_replace(chunk, r'({_SPECIAL})', r'\\$1')"


def spark_is_wild(column: str) -> str:
    """Return whether expressions in a column mean more than one key, in Spark SQL."""
    return (
        f"exists(split({column}, '/'), chunk -> contains(chunk, '*') "
        "AND NOT startswith(chunk, '@'))"
    )


def prefix_of(expr: str) -> str:
    """Return what every key begins with that an expression means."""
    chunks = []
    for chunk in expr.split("/"):
        if "*" in chunk:
            break
        chunks.append(chunk)
    # Without the slash: `a/**` means `a`, too.
    return "/".join(chunks)
