r"""Which patterns a stranger may have matched: those whose match cannot take for ever.

Java tries the ways through a pattern one after the other, and looks at no clock meanwhile. For
`(a+)+b` and sixty letters there are more ways than anybody can wait for; `.*a.*b.*c.*d` takes the
fourth power of the length. A pattern is let through if no text can be read in more and more ways
by the same loop, and if loops that may share a text are few.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from zenlake.lake.query.pattern_scanner import Automaton, Unread, automaton_of

__all__ = ["MOST_LOOPS", "demand_like", "demand_pattern", "power_of", "why_not"]

MOST_LOOPS: Final = 3
"""Loops one after the other that may read the same characters, the search for the start too."""
MOST_REPEATED: Final = 30
"""Loops in one pattern."""
MOST_STEPS: Final = 100_000
"""Steps in which a loop must be seen to be harmless."""
MOST_WAYS: Final = 10_000
"""Ways that a pattern without its loops may be read in."""
ADVICE: Final = (
    "write it without a repetition inside another one over the same characters, or compare with "
    "LIKE, startswith, contains or split_part"
)


def demand_pattern(pattern: str) -> str:
    """Return why a regular expression is refused, with what to write instead; empty: it is not."""
    why = why_not(pattern)
    return f"the pattern '{_shown(pattern)}' has {why}; {ADVICE}" if why else ""


def demand_like(pattern: str) -> str:
    """Return the same of a pattern of LIKE."""
    runs = pattern.rstrip("%").split("%")
    loops = sum(1 for before in runs[:-1] if before) + (pattern[:1] == "%")
    if loops <= MOST_LOOPS:
        return ""
    return (
        f"the pattern '{_shown(pattern)}' has {loops} % before its last text, and at most "
        f"{MOST_LOOPS} are matched; write fewer, or several conditions joined by AND"
    )


@lru_cache(maxsize=256)
def why_not(pattern: str) -> str:
    """Return what a match of a pattern could take for ever by; empty: by nothing."""
    try:
        read = automaton_of(pattern)
    except Unread as error:
        return str(error)
    loops = _loops(read)
    if len(loops) > MOST_REPEATED:
        return f"more than {MOST_REPEATED} repetitions"
    if any(_is_ambiguous(read, loop) for loop in loops):
        return "a repetition inside another one"
    if _ways(read) > MOST_WAYS:
        return "too many ways to read the same text"
    if _most_in_a_row(read, loops) > MOST_LOOPS:
        return f"more than {MOST_LOOPS} repetitions one after the other over the same characters"
    return ""


@lru_cache(maxsize=256)
def power_of(pattern: str) -> int:
    """Return the power of a text's length that a match takes, for a pattern that is let through."""
    read = automaton_of(pattern)
    return max(1, _most_in_a_row(read, _loops(read)))


def _shown(pattern: str) -> str:
    return pattern if len(pattern) <= 60 else f"{pattern[:57]}…"


def _loops(read: Automaton) -> list[frozenset[int]]:
    """The places that can be reached from themselves, together with those that they reach so."""
    reached = [_reachable(read, place) for place in range(len(read.sets))]
    loops = {
        frozenset(other for other in reached[place] if place in reached[other])
        for place in range(len(read.sets))
        if place in reached[place]
    }
    return sorted(loops, key=min)


def _reachable(read: Automaton, place: int) -> set[int]:
    found: set[int] = set()
    waiting = list(read.follow[place])
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += read.follow[one]
    return found


def _is_ambiguous(read: Automaton, loop: frozenset[int]) -> bool:
    """Whether a loop can read the same text, from one of its places to another, in two ways."""
    follow = {place: [one for one in read.follow[place] if one in loop] for place in loop}
    if any(read.follow[place][one] > 1 for place in loop for one in follow[place]):
        return True
    # Two walks that read the same characters: whether they part and meet again.
    back: dict[tuple[int, int], list[tuple[int, int]]] = {}
    apart: set[tuple[int, int]] = set()
    waiting = [(place, place) for place in loop]
    seen = set(waiting)
    steps = 0
    while waiting:
        pair = waiting.pop()
        steps += len(follow[pair[0]]) * len(follow[pair[1]])
        if steps > MOST_STEPS:
            return True
        for one in follow[pair[0]]:
            for other in follow[pair[1]]:
                if not read.sets[one] & read.sets[other]:
                    continue
                then = (one, other)
                back.setdefault(then, []).append(pair)
                if then not in seen:
                    seen.add(then)
                    waiting.append(then)
                    if one != other:
                        apart.add(then)
    if not apart:
        return False
    meeting = [(place, place) for place in loop]
    met = set(meeting)
    while meeting:
        for pair in back.get(meeting.pop(), ()):
            if pair not in met:
                if pair in apart:
                    return True
                met.add(pair)
                meeting.append(pair)
    return False


def _ways(read: Automaton) -> int:
    """In how many ways a text may be read at most, where no loop is walked twice."""
    ways = 1
    for after in (read.first, *read.follow):
        same = sum(
            after[one]
            for one in after
            if after[one] > 1
            or any(one != two and read.sets[one] & read.sets[two] for two in after)
        )
        ways *= max(1, same)
    return ways


def _most_in_a_row(read: Automaton, loops: list[frozenset[int]]) -> int:
    """How many loops may at most share out one text among them."""
    letters = [_letters(read, loop) for loop in loops]
    most = [1] * len(loops)
    # Loops are sorted by their first places: what comes after comes later.
    for later, loop in enumerate(loops):
        for earlier in range(later):
            shared = letters[earlier] & letters[later]
            starts = {one for place in loops[earlier] for one in read.follow[place]}
            if shared and _leads(read, starts - loops[earlier], loop, shared):
                most[later] = max(most[later], most[earlier] + 1)
    if read.anchored:
        return max(most, default=0)
    # The search for the start is a loop before the first.
    begun = [0] * len(loops)
    for later, loop in enumerate(loops):
        if _leads(read, set(read.first), loop, letters[later]):
            begun[later] = 2
        for earlier in range(later):
            shared = letters[earlier] & letters[later]
            starts = {one for place in loops[earlier] for one in read.follow[place]}
            if begun[earlier] and shared and _leads(read, starts - loops[earlier], loop, shared):
                begun[later] = max(begun[later], begun[earlier] + 1)
    return max([*most, *begun], default=0)


def _letters(read: Automaton, loop: frozenset[int]) -> int:
    letters = 0
    for place in loop:
        letters |= read.sets[place]
    return letters


def _leads(read: Automaton, starts: set[int], loop: frozenset[int], letters: int) -> bool:
    """Whether a way leads from these places to a loop over such characters alone."""
    seen: set[int] = set()
    waiting = list(starts)
    while waiting:
        one = waiting.pop()
        if one in loop:
            return True
        if one not in seen and read.sets[one] & letters:
            seen.add(one)
            waiting += read.follow[one]
    return False
