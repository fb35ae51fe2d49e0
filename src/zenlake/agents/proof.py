"""What an answer was made of, and what is missing of it, from the ledgers of recorders.

A recorder knows of each publisher that numbers its samples what came and what did not. Of an
answer about some keys that means one of three things: nothing is missing, something is (and
which), or nobody can know, because nobody numbers the samples under these keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from zenlake.keys import intersects

__all__ = ["MOST", "gaps", "verdict"]

MOST: Final = 50
"""How many sources, keys or ranges are listed one by one."""


def verdict(expr: str, ledgers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Whether all samples under these keys came: `complete` is true, false or, unknown, null."""
    expected = received = 0
    missing: list[dict[str, Any]] = []
    unprovable: dict[str, int] = {}
    drops: dict[str, int] = {}
    known = False
    for ledger in ledgers:
        known = True
        for source in ledger.get("sources", ()):
            if not _about(expr, source.get("key")):
                continue
            expected += source.get("expected", 0)
            received += source.get("received", 0)
            if source.get("missing"):
                missing.append(_gap(source))
        for key, count in dict(ledger.get("unprovable", {})).items():
            if _about(expr, key):
                unprovable[key] = unprovable.get(key, 0) + count
        for why, count in dict(ledger.get("drops", {})).items():
            drops[why] = drops.get(why, 0) + count
    lost = sum(one["missing"] for one in missing)
    complete = False if missing or drops else (True if expected and not unprovable else None)
    return {
        "complete": complete,
        "in_words": _words(known, expected, lost, unprovable, drops),
        "expected": expected,
        "received": received,
        "missing": lost,
        "gaps": missing[:MOST],
        "unprovable_keys": len(unprovable),
        "dropped_by_recorder": drops,
    }


def gaps(expr: str, ledgers: Iterable[Mapping[str, Any]]) -> list[str]:
    """A sentence for each source of which something is missing, and for each other doubt."""
    held = list(ledgers)
    sentences = []
    proof = verdict(expr, held)
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


def _about(expr: str, key: object) -> bool:
    return isinstance(key, str) and intersects(expr, key)


def _gap(source: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "source": source.get("source"),
        "key": source.get("key"),
        "expected": source.get("expected", 0),
        "missing": source["missing"],
        "healed": source.get("healed", 0),
        "ranges": [list(one) for one in source.get("gaps", ())][:MOST],
    }


def _words(
    known: bool, expected: int, lost: int, unprovable: Mapping[str, int], drops: Mapping[str, int]
) -> str:
    if not known:
        return "no recorder answers here, so nobody knows whether something is missing"
    if drops:
        return f"the recorder could not keep {sum(drops.values())} samples"
    if lost:
        return f"{lost} of {expected} numbered samples are missing"
    if not expected:
        return "no publisher numbers its samples under these keys: nobody can know what is missing"
    sentence = f"all {expected} numbered samples came"
    if unprovable:
        sentence += f"; {sum(unprovable.values())} without numbers cannot be proved"
    return sentence
