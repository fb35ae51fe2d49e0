"""Which keys two key expressions share: the algebra of chunks.

A key expression is text cut by `/` into chunks. It stands for a set of keys:

    a       that chunk                      *     any one chunk
    a$*b    chunks `a…b`                    **    any number of chunks, none too
    @a      that chunk and no other         (a wildcard never matches a chunk that starts with @)

Everything here works on canonical text (`check` refuses the rest, `canonize` repairs it), and in
polynomial time whatever a stranger writes. Two observations make that cheap:

* Where only one side has `**`, the stretches between its `**` have a fixed length, so placing each
  stretch as far left as it goes never hurts: one mark to go back to is enough.
* Where both sides have `**`, each can swallow what is special in the middle of the other, so only
  the ends need comparing; and since no wildcard swallows an `@` chunk, these cut both sides into
  sections that are compared one by one. The same holds for `$*` among characters.

Inclusion is exact set inclusion: `*/**` includes `**/x`, because a key that ends in `x` has at
least one chunk. Eclipse Zenoh answers no there and agrees elsewhere.
"""

from __future__ import annotations

from typing import Final

from zenlake.errors import KeyExprError

__all__ = [
    "canonize",
    "check",
    "chunk_includes",
    "chunk_intersects",
    "chunks_include",
    "chunks_intersect",
    "includes",
    "intersects",
    "is_verbatim",
    "is_wild",
]

ONE: Final = "*"
MANY: Final = "**"
SOME: Final = "$*"

WIDE: Final = 4096
"""From this many pairs of chunks on, sets of places are cheaper than going back."""


def intersects(a: str, b: str) -> bool:
    """Whether at least one key belongs to both canonical expressions."""
    if a == b:
        return True
    if ONE not in a and ONE not in b:
        return False
    # In canonical text two stars in a row are a chunk of their own.
    if MANY in a:
        if MANY in b:
            return _sections_intersect(a.split("/"), b.split("/"))
        return _lay(a.split("/"), b.split("/"), False)
    if MANY in b:
        return _lay(b.split("/"), a.split("/"), False)
    return _pairs_intersect(a.split("/"), b.split("/"))


def includes(a: str, b: str) -> bool:
    """Whether every key of `b` belongs to `a`, both canonical expressions."""
    if a == b:
        return True
    if ONE not in a:
        return False
    return _lay(a.split("/"), b.split("/"), True)


def is_wild(text: str) -> bool:
    """Whether the expression stands for more than one key."""
    if ONE not in text:
        return False
    # `@$*` holds a star and yet is one literal chunk.
    return any(ONE in chunk and not chunk.startswith("@") for chunk in text.split("/"))


def is_verbatim(chunk: str) -> bool:
    """Whether only the identical chunk matches this one."""
    return chunk.startswith("@")


# --- chunks ---------------------------------------------------------------------------------------


def chunk_intersects(c: str, d: str) -> bool:
    """Whether some chunk matches both patterns; neither may be `**`."""
    if c == d:
        return True
    if c.startswith("@") or d.startswith("@"):
        return False
    if c == ONE or d == ONE:
        return True
    if SOME in c:
        return _ends_agree(c, d) if SOME in d else _spans(c, d)
    return SOME in d and _spans(d, c)


def chunk_includes(c: str, d: str) -> bool:
    """Whether every chunk that matches `d` matches `c`; neither may be `**`."""
    if c == d:
        return True
    if c.startswith("@") or d.startswith("@"):
        return False
    if c == ONE:
        return True
    # The `$*` inside `d` is text that no literal of `c` can match: only a `$*` of `c` covers it.
    return d != ONE and SOME in c and _spans(c, d)


def _spans(pattern: str, text: str) -> bool:
    """Whether the literals of `pattern` occur in `text` in order, the outer ones at its ends."""
    parts = pattern.split(SOME)
    head = parts[0]
    tail = parts[-1]
    if not text.startswith(head) or not text.endswith(tail):
        return False
    at = len(head)
    end = len(text) - len(tail)
    if at > end:
        return False
    for k in range(1, len(parts) - 1):
        part = parts[k]
        at = text.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def _ends_agree(c: str, d: str) -> bool:
    """Whether two patterns that both hold `$*` can start alike and end alike."""
    head = c[: c.find(SOME)]
    other = d[: d.find(SOME)]
    if not head.startswith(other) and not other.startswith(head):
        return False
    head = c[c.rfind(SOME) + 2 :]
    other = d[d.rfind(SOME) + 2 :]
    return head.endswith(other) or other.endswith(head)


# --- lists of chunks ------------------------------------------------------------------------------


def chunks_intersect(a: list[str], b: list[str]) -> bool:
    """Whether some key matches both lists of chunks."""
    if MANY in a:
        if MANY in b:
            return _sections_intersect(a, b)
        return _lay(a, b, False)
    if MANY in b:
        return _lay(b, a, False)
    return _pairs_intersect(a, b)


def _pairs_intersect(a: list[str], b: list[str]) -> bool:
    """Whether two lists without `**` intersect chunk by chunk."""
    n = len(a)
    if n != len(b):
        return False
    for k in range(n):
        c = a[k]
        d = b[k]
        if c != d and not chunk_intersects(c, d):
            return False
    return True


def chunks_include(a: list[str], b: list[str]) -> bool:
    """Whether every key that matches `b` matches `a`."""
    return _lay(a, b, True)


def _lay(a: list[str], b: list[str], covering: bool) -> bool:
    """Lay the pattern `a` over `b` chunk by chunk, each stretch as far left as it goes.

    With `covering`, each chunk of `a` must include what it lies on, and a `**` of `b` is one more
    thing to lie on; else they must intersect, and `b` holds no `**`.
    """
    n = len(a)
    m = len(b)
    if n * m > WIDE:
        return _lay_wide(a, b, covering)
    i = 0
    j = 0
    back = -1  # where `a` goes on after its last `**`, or -1 before the first
    start = 0  # where that `**` stopped swallowing
    while True:
        if i < n:
            c = a[i]
            if c == MANY:
                i += 1
                back = i
                start = j
                continue
            if j == m:
                # Swallowing more would only leave less to lie on.
                return False
            d = b[j]
            if covering and d == MANY:
                if c == ONE and _floats(a, i):
                    j += 1
                    continue
            elif c == d or (chunk_includes(c, d) if covering else chunk_intersects(c, d)):
                i += 1
                j += 1
                continue
        elif j == m:
            return True
        elif back == n:
            # A last `**` takes the whole rest at once.
            return _next_verbatim(b, j) == m
        if back < 0 or start == m or b[start].startswith("@"):
            return False
        start += 1
        i = back
        j = start


def _lay_wide(a: list[str], b: list[str], covering: bool) -> bool:
    """The same answer for long expressions, following all the ways to lie at once.

    The places of `b` where the next chunk of `a` may lie are the bits of an integer, so that one
    step moves all of them.
    """
    many = 0  # places before a `**`
    single = 0  # places before any other chunk that a wildcard may swallow
    literal: dict[str, int] = {}
    patterns: dict[str, int] = {}
    for j, d in enumerate(b):
        if d == MANY:
            many |= 1 << j
            continue
        if not d.startswith("@"):
            single |= 1 << j
            if ONE in d:
                patterns[d] = patterns.get(d, 0) | 1 << j
        literal[d] = literal.get(d, 0) | 1 << j
    free = single | many
    places = 1
    floats = False
    for i, c in enumerate(a):
        if c == MANY:
            # The carry of the addition runs up each stretch without an `@` and stops at its end.
            places |= (free + (places & free)) ^ free
        elif c == ONE:
            if i == 0 or a[i - 1] != ONE:
                floats = covering and _floats(a, i)
            if floats:
                places |= (places & many) << 1
            places = (places & single) << 1
        else:
            places = (places & _fits(c, literal, patterns, covering)) << 1
        if not places:
            return False
    return places >> len(b) & 1 == 1


def _fits(c: str, literal: dict[str, int], patterns: dict[str, int], covering: bool) -> int:
    """The places where the chunk `c`, which is not a bare wildcard, may lie."""
    bits = literal.get(c, 0)
    if c.startswith("@"):
        return bits
    if SOME in c:
        for d, where in literal.items():
            if chunk_includes(c, d) if covering else chunk_intersects(c, d):
                bits |= where
    elif not covering:
        for d, where in patterns.items():
            if chunk_intersects(c, d):
                bits |= where
    return bits


def _floats(a: list[str], i: int) -> bool:
    """Whether the `*` at `i` runs into a `**`, so that together they mean "at least so many"."""
    n = len(a)
    while i < n and a[i] == ONE:
        i += 1
    return i < n and a[i] == MANY


def _sections_intersect(a: list[str], b: list[str]) -> bool:
    """Compare section by section, cut at the `@` chunks, which only match their equal."""
    i = 0
    j = 0
    while True:
        i_end = _next_verbatim(a, i)
        j_end = _next_verbatim(b, j)
        if not _section_intersects(a[i:i_end], b[j:j_end]):
            return False
        if i_end == len(a) or j_end == len(b):
            return i_end == len(a) and j_end == len(b)
        if a[i_end] != b[j_end]:
            return False
        i = i_end + 1
        j = j_end + 1


def _next_verbatim(chunks: list[str], i: int) -> int:
    while i < len(chunks) and not chunks[i].startswith("@"):
        i += 1
    return i


def _section_intersects(a: list[str], b: list[str]) -> bool:
    if MANY not in a or MANY not in b:
        return chunks_intersect(a, b)
    k = 0
    while a[k] != MANY and b[k] != MANY:
        if not chunk_intersects(a[k], b[k]):
            return False
        k += 1
    i = len(a) - 1
    j = len(b) - 1
    while a[i] != MANY and b[j] != MANY:
        if not chunk_intersects(a[i], b[j]):
            return False
        i -= 1
        j -= 1
    return True


# --- text -----------------------------------------------------------------------------------------


def check(text: str) -> None:
    """Raise `KeyExprError` unless `text` is a key expression in canonical form."""
    if _is_plain(text):
        return
    canonical = canonize(text)
    if canonical != text:
        raise KeyExprError(f"'{text}' is not in canonical form; write '{canonical}'")


def canonize(text: str) -> str:
    """Return the canonical text of the same set of keys, or raise `KeyExprError`.

    `$*` alone becomes `*`, `$*$*` becomes `$*`, `**/**` becomes `**`, and `**/*` becomes `*/**`.
    """
    if _is_plain(text):
        return text
    chunks: list[str] = []
    pending = False  # a `**` waits until the `*` that follow it are out
    for chunk in text.split("/"):
        if "$" in chunk or ONE in chunk or "#" in chunk or "?" in chunk or not chunk:
            chunk = _canonize_chunk(chunk, text)
        if chunk == MANY:
            pending = True
            continue
        if pending and chunk != ONE:
            chunks.append(MANY)
            pending = False
        chunks.append(chunk)
    if pending:
        chunks.append(MANY)
    return "/".join(chunks)


def _is_plain(text: str) -> bool:
    """Whether `text` is a key without wildcards; raises where it cannot be sent at all."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise KeyExprError(
                f"{text!a} holds half a surrogate pair; write whole Unicode characters"
            ) from None
    return (
        ONE not in text
        and "$" not in text
        and "#" not in text
        and "?" not in text
        and "//" not in text
        and text != ""
        and not text.startswith("/")
        and not text.endswith("/")
    )


def _canonize_chunk(chunk: str, text: str) -> str:
    """The canonical form of one chunk that is empty or holds a special character."""
    if not chunk:
        raise KeyExprError(_about_empty(text))
    if "#" in chunk or "?" in chunk:
        raise KeyExprError(_about_forbidden(text))
    if chunk in (ONE, MANY):
        return chunk
    literal = chunk.replace(SOME, "")
    if "$" in literal:
        raise KeyExprError(
            f"'{text}': '$' is only allowed in '$*'; write '$*' or another character"
        )
    if ONE in literal:
        raise KeyExprError(_about_star(chunk, text))
    while SOME + SOME in chunk:
        chunk = chunk.replace(SOME + SOME, SOME)
    return ONE if chunk == SOME else chunk


def _about_empty(text: str) -> str:
    repaired = "/".join([chunk for chunk in text.split("/") if chunk])
    if not repaired:
        return f"'{text}' has no chunk; write at least one character, or '**' for every key"
    return f"'{text}': a chunk is empty, or '/' is first or last; write '{repaired}'"


def _about_forbidden(text: str) -> str:
    if "?" in text:
        return f"'{text}': '?' starts the parameters of a selector; use Selector, or leave it out"
    return f"'{text}': '#' is not allowed in a key expression; write another character"


def _about_star(chunk: str, text: str) -> str:
    """What to write instead of a `*` glued to other characters."""
    marked = chunk.replace(SOME, "\0")
    if not marked.strip(ONE):
        return f"'{text}': '{chunk}' is no wildcard; write '*' for one chunk, '**' for any number"
    if MANY not in marked:
        better = _with(text, chunk, _starred(marked))
        return f"'{text}': '*' must fill a whole chunk; write '{better}'"
    head, _, tail = marked.partition(MANY)
    tail = tail.lstrip(ONE)
    apart = [_starred(head), MANY, _starred(tail)]
    loose = [_starred(head and head + "\0"), MANY, _starred(tail and "\0" + tail)]
    first = _with(text, chunk, "/".join([part for part in apart if part]))
    other = _with(text, chunk, "/".join([part for part in loose if part]))
    choice = f"'{first}'" if first == other else f"'{first}' or '{other}'"
    return f"'{text}': '**' must fill a whole chunk; write {choice}"


def _with(text: str, chunk: str, better: str) -> str:
    return "/".join([better if part == chunk else part for part in text.split("/")])


def _starred(marked: str) -> str:
    """Write every run of stars and marks as one `$*`, and `*` when nothing else is left."""
    marked = marked.replace(ONE, "\0")
    while "\0\0" in marked:
        marked = marked.replace("\0\0", "\0")
    return ONE if marked == "\0" else marked.replace("\0", SOME)
