"""HTTP of a node: every key is a resource, as with Eclipse Zenoh's REST plugin.

asking      a request, as what it asks of the bus; pure
samples     samples as JSON, and as events; pure
tables      answers as CSV, JSON lines, Arrow and Parquet
names       which hosts and origins a request may name; pure
users       who asks, and what they may do
requests    what every request goes through, and the limits
keys        GET, POST, PUT, PATCH, DELETE on keys, and streams of events
pages       metrics, health, the web page and its description
service     the server: a thread, a loop, a socket
"""

from __future__ import annotations

from zenlake.rest.service import RestService, start

__all__ = ["RestService", "start"]
