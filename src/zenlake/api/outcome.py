"""Publishing without waiting, and what became of it."""

from __future__ import annotations

from enum import Enum

from zenlake.node.entities import Publication
from zenlake.wire.codec_network import Push

__all__ = ["PutOutcome", "attempt"]


class PutOutcome(Enum):
    """What became of a sample that was tried; true if it was queued wherever it goes."""

    QUEUED = "queued"
    NOBODY_LISTENS = "nobody listens"
    QUEUE_FULL = "the queue towards a neighbour, or a channel of this session, is full"

    @property
    def reason(self) -> str:
        """Why, in words."""
        return self.value

    def __bool__(self) -> bool:
        """Whether it was queued."""
        return self is PutOutcome.QUEUED


def attempt(publication: Publication, push: Push) -> PutOutcome:
    """Publish without waiting."""
    if publication.congestion:
        # What may wait is sent under the same byte by a twin that does not.
        patient = publication
        publication = Publication(
            patient.node,
            patient.routes,
            eid=patient.eid,
            key=patient.key,
            qos=patient.qos,
            reliable=patient.reliable,
            encoding=patient.encoding,
            schema=patient.schema,
            destination=patient.destination,
        )
        publication.congestion = 0
        publication.impatient = True
    if not publication.publish(push):
        return PutOutcome.QUEUE_FULL
    if not publication.remotes and not publication.locals:
        return PutOutcome.NOBODY_LISTENS
    return PutOutcome.QUEUED
