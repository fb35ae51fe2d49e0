"""Rules and subjects of access control that no policy names: allowed, and most likely a mistake.

Eclipse Zenoh takes such a configuration, so it is taken here; but a subject without rules may open
what the rules of others close, and that must not go unsaid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from zenlake.config.json5 import Plain
from zenlake.config.problem import Problem

__all__ = ["unapplied"]

_PATH = "access_control"


def unapplied(section: Plain) -> tuple[Problem, ...]:
    """Return warnings for what no policy of the plain section `access_control` names."""
    if not isinstance(section, Mapping) or section.get("enabled") is not True:
        return ()
    allows = section.get("default_permission") == "allow"
    problems: list[Problem] = []
    for kind in ("rules", "subjects"):
        named = {name for policy in _items(section, "policies") for name in _texts(policy, kind)}
        for number, item in enumerate(_items(section, kind)):
            if item.get("id") in named:
                continue
            if kind == "rules":
                effect = "it has no effect"
            elif allows:
                effect = (
                    "whoever it matches is allowed everything, whatever is denied to other "
                    "subjects that match, because one that allows is enough"
                )
            else:
                effect = "it allows nothing to anybody"
            problems.append(
                Problem(
                    f"{_PATH}/{kind}/{number}",
                    f"no policy names the {kind[:-1]} '{item.get('id')}': {effect}; name it in a "
                    "policy, or remove it",
                )
            )
    return tuple(problems)


def _items(section: Mapping[str, Plain], kind: str) -> Iterator[Mapping[str, Plain]]:
    items = section.get(kind)
    for item in items if isinstance(items, list) else ():
        if isinstance(item, Mapping):
            yield item


def _texts(policy: Mapping[str, Plain], kind: str) -> list[Plain]:
    names = policy.get(kind)
    return names if isinstance(names, list) else []
