"""What an operator is told of a broker of the 2018 protocol, and of its bridge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from zenlake.xrce_io.translate import is_key

if TYPE_CHECKING:
    from zenlake.xrce_io.brokering import RunningBroker

__all__ = ["facts"]


def facts(running: RunningBroker, bridged: Mapping[str, int]) -> list[tuple[str, Any]]:
    """Return what an operator is told of a broker, key by key; `bridged`: counts of its bridge."""
    broker = running.broker
    counters = asdict(broker.counters)
    counters["sessions"] = len(broker.members)
    counters["values_refused"] = broker.values.refused
    counters["congested"] += sum(member.congested for member in broker.members.values())
    counters.update(bridged)
    rows: list[tuple[str, Any]] = [
        ("broker", {"pid": broker.options.pid.hex(), "locators": running.locators(), **counters})
    ]
    for pid, member in broker.members.items():
        session = member.session
        known: dict[str, Any] = asdict(session.counters)
        known["stored"] = sum(store.count for store in member.stores.values())
        known["stored_bytes"] = member.store_room.used
        known["store_dropped"] = member.store_dropped + sum(
            store.dropped for store in member.stores.values()
        )
        conduits = session.conduits.values()
        known["dropped"] = sum(conduit.reliable_in.dropped for conduit in conduits)
        known["discarded"] = sum(
            conduit.reliable_slices.discarded + conduit.best_slices.discarded
            for conduit in conduits
        )
        known["declared_bytes"] = sum(tables.bytes for tables in member.spaces.values())
        known["backlog"] = session.backlog
        known["congested"] = member.congested
        known["sn_bits"] = session.bits
        known["style"] = member.style
        known["habits"] = [name for name, on in asdict(session.habits).items() if on]
        for space, tables in member.spaces.items():
            known[f"declared_{space}" if space else "declared"] = {
                "resources": len(tables.resources), "publishers": len(tables.publishers),
                "subscribers": len(tables.subscribers), "selections": len(tables.selections),
            }  # fmt: skip
            for resource in tables.resources.values():
                if resource.properties and resource.name.trivial and is_key(resource.name.path):
                    properties = {str(item.id): item.value.hex() for item in resource.properties}
                    rows.append((f"property/{resource.name.path}", properties))
        rows.append((f"session/{pid.hex()}", known))
    return rows
