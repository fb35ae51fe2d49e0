"""How storages of one key expression become equal: Eclipse Zenoh's replication protocol, pure.

    Eras       which interval and sub-interval a timestamp lies in, and how hot that is
    ReplicationLog        the newest event of each key, with a fingerprint of each interval
    Digest     the fingerprints of a log, small enough to be published every interval
    Replica    compares digests, asks for what differs, answers others, applies what it hears

Each replica publishes its digest and pulls what it lacks from those whose digest differs. Bytes
come in and go out, time is an argument; `storage_manager/replicating` is the edge that
carries them.
"""

from __future__ import annotations

from zenlake.replication.eras import Eras
from zenlake.replication.events import Action, Event
from zenlake.replication.log import ReplicationLog
from zenlake.replication.messages import Digest, DigestDiff
from zenlake.replication.replica import Replica

__all__ = ["Action", "Digest", "DigestDiff", "Eras", "Event", "Replica", "ReplicationLog"]
