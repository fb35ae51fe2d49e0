"""The keys that one neighbour publishes on, each remembered with its route."""

from __future__ import annotations

from zenlake.node.routes.forward import Inbound
from zenlake.node.traffic import Traffic

#: How many keys of a neighbour are remembered with their route.
INBOUND = 1 << 14


class InboundRoutes:
    """Routes of one neighbour's samples, by key and by the router that they come from."""

    def __init__(self, traffic: Traffic) -> None:
        """`traffic` counts the samples of routes that are forgotten."""
        self._traffic: Traffic = traffic
        self._by_key: dict[str, Inbound] = {}
        #: Between routers: routes of what comes from beyond the neighbour, by its number for that.
        self._by_node: dict[int, dict[str, Inbound]] = {}
        self._count: int = 0

    def get(self, key: str, node_id: int) -> Inbound | None:
        """The route of a key; `node_id`: 0, or the neighbour's number for where it comes from."""
        if not node_id:
            return self._by_key.get(key)
        inbounds = self._by_node.get(node_id)
        return None if inbounds is None else inbounds.get(key)

    def add(self, key: str, node_id: int) -> Inbound:
        """Remember one more key; its route is found when it is first needed."""
        inbound = Inbound(key, node_id)
        self._count += 1
        inbounds = self._by_node.setdefault(node_id, {}) if node_id else self._by_key
        inbounds[key] = inbound
        return inbound

    def is_full(self) -> bool:
        """Whether all must be forgotten before one more is remembered."""
        return self._count >= INBOUND

    def all(self) -> list[Inbound]:
        """The routes that are remembered."""
        routes = list(self._by_key.values())
        for inbounds in self._by_node.values():
            routes.extend(inbounds.values())
        return routes

    def clear(self) -> None:
        """Forget all routes; the samples that took them stay counted."""
        heard = self._traffic.heard
        for inbound in self.all():
            heard.add(inbound.key, inbound.samples, inbound.size)
        self._count = 0
        self._by_key.clear()
        self._by_node.clear()
