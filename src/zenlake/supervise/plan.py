"""What `zenlake up` runs: the parts by name, and the arguments of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from zenlake.config.openness import Guards

ROUTER: Final = "router"
LAKE: Final = "lake"
#: It runs within the router.
RECORDER: Final = "recorder"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run, and where."""

    #: The folder, absolute; and as it was called on the command line.
    data: Path
    shown: str
    router: list[str]
    #: Arguments of the lake; None: there is none.
    lake: list[str] | None = None
    #: Makes what the lake needs before it starts; may raise `OSError`.
    prepare_lake: Callable[[], None] = lambda: None
    #: Whether programs on this machine find the router without being told where it is.
    found_by_scouting: bool = False
    #: Whether the router asks who connects; then programs here connect as its operator.
    guarded: bool = False
    #: What no option may open; None: there is neither a file nor `--open`.
    guards: Guards | None = None
    budget: int | None = None
    retain_age: float | None = None
    #: What the router is told about its HTTP and the page.
    page: list[str] = field(default_factory=list)
    #: What other machines and people ask for: set once the HTTP server listens.
    http: str = ""
