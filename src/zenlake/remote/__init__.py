"""The remote API: the WebSocket protocol that browsers and Node speak (`@eclipse-zenoh/zenoh-ts`).

fields      how values are written
messages    every message, declared once; reading and writing follow; pure
outgoing    what waits for a client, bounded
client      one client: what it declares and publishes
query_requests, node_requests: what it asks and is asked; what it wants to know of the node
sockets     clients that were admitted, each with its WebSocket
service     the server at a port of its own, and its clients in the admin space
"""

from __future__ import annotations

from zenlake.remote.service import RemoteApiService, start

__all__ = ["RemoteApiService", "start"]
