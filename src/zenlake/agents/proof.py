"""What the ledgers of recorders prove about an answer, in words that an assistant can pass on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from zenlake.journal.ledger.proof import Proven, proven

__all__ = ["MOST", "gaps", "verdict"]

MOST: Final = 50
"""How many sources, keys or ranges are listed one by one."""


def verdict(exprs: tuple[str, ...], ledgers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Whether all samples under these keys came: `complete` is true, false or, unknown, null."""
    found = proven(exprs, ledgers)
    missing = [_gap(source) for source in found.sources if source["missing"]]
    return {
        "complete": found.complete,
        "in_words": _words(found),
        "expected": found.expected,
        "received": found.expected - found.missing,
        "missing": found.missing,
        "gaps": missing[:MOST],
        "unprovable_keys": len(found.unprovable),
        "dropped_by_recorder": found.drops,
    }


def gaps(expr: str, ledgers: Iterable[Mapping[str, Any]]) -> list[str]:
    """A sentence for each source of which something is missing, and for each other doubt."""
    held = list(ledgers)
    sentences = []
    proof = verdict((expr,), held)
    for one in proof["gaps"]:
        numbers = ", ".join(f"{a}..{b}" if a != b else str(a) for a, b in one["ranges"])
        healed = f"; {one['healed']} others were healed" if one["healed"] else ""
        sentences.append(
            f"{one['source']} published {one['expected']} samples, the last under {one['key']}; "
            f"{one['missing']} never came: numbers {numbers}{healed}. If the publisher has a "
            "cache and is still there, the recorder asks it again when the next gap opens."
        )
    for why, count in proof["dropped_by_recorder"].items():
        sentences.append(f"The recorder itself could not keep {count} samples: {why}.")
    if proof["unprovable_keys"]:
        sentences.append(
            f"{proof['unprovable_keys']} keys have samples without numbers: whether all of those "
            "came cannot be proved. Publishers with sample_miss_detection number theirs."
        )
    return sentences or [proof["in_words"]]


def _gap(source: Mapping[str, Any]) -> dict[str, Any]:
    names = ("source", "key", "expected", "missing", "healed")
    return {**{name: source[name] for name in names}, "ranges": source["gaps"][:MOST]}


def _words(found: Proven) -> str:
    if not found.known:
        return "no recorder answers here, so nobody knows whether something is missing"
    if found.drops:
        return f"the recorder could not keep {sum(found.drops.values())} samples"
    if found.missing:
        return f"{found.missing} of {found.expected} numbered samples are missing"
    if not found.expected:
        return "no publisher numbers its samples under these keys: nobody can know what is missing"
    sentence = f"all {found.expected} numbered samples came"
    if found.unprovable:
        sentence += f"; {sum(found.unprovable.values())} without numbers cannot be proved"
    return sentence
