"""The journals of a node, as its configuration names them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from zenlake.journal.recorder import Options, Recorder

if TYPE_CHECKING:
    from zenlake.api.session import Session
    from zenlake.config.model import Settings
    from zenlake.config.model_services import JournalService

__all__ = ["options_of", "recording"]


def options_of(service: JournalService) -> Options:
    """What a recorder is told of one entry of the configuration."""
    return Options(
        tuple(str(key) for key in service.key_exprs),
        service.dir,
        name=str(service.name),
        partitions=service.partitions,
        fsync=service.fsync,
        segment_bytes=service.segment_bytes,
        segment_age=service.segment_age,
        retain_bytes=service.retain_bytes,
        retain_age=service.retain_age,
        on_full=service.on_full,
        answer=service.answer,
        answer_time=service.answer_time,
        complete=service.complete,
        heal=service.heal,
    )


@contextmanager
def recording(session: Session, settings: Settings) -> Iterator[list[Recorder]]:
    """Record every journal of a configuration, until the end of the block."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(Recorder(session, options_of(service)))
            for service in settings.journals
        ]
