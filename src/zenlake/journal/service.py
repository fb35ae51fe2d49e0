"""The journals of a node, as its configuration names them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING

from zenlake.journal.options import Options, RetainRule
from zenlake.journal.recorder import Recorder

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.config.model import Settings
    from zenlake.config.model_services import JournalService

__all__ = ["options_of", "recording"]

#: What a configuration and a recorder call by the same name.
SAME = tuple(
    field.name
    for field in fields(Options)
    if field.name not in ("key_exprs", "path", "name", "around", "retain")
)


def options_of(service: JournalService) -> Options:
    """What a recorder is told of one entry of the configuration."""
    keys = tuple(str(key) for key in service.key_exprs)
    return Options(
        keys,
        service.dir,
        str(service.name),
        retain=tuple(RetainRule(str(rule.keys), rule.age) for rule in service.retain),
        **{name: getattr(service, name) for name in SAME},
    )


@contextmanager
def recording(session: Session, settings: Settings) -> Iterator[list[Recorder]]:
    """Record every journal of a configuration, until the end of the block."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(Recorder(session, options_of(service)))
            for service in settings.journals
        ]
