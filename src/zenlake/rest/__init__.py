"""HTTP of a node: every key is a resource, as with Eclipse Zenoh's REST plugin.

asking      a request, as what it asks of the bus; pure
samples     samples as JSON, and as events; pure
tables      answers as CSV, JSON lines, Arrow and Parquet
requests    what every request goes through, and the limits; the web page's WebSocket
keys        GET, POST, PUT, PATCH, DELETE on keys, and streams of events
page_rights what right each page asks for
pages       metrics, health, the web page and its description
service     all of it, as a node's configuration says
"""

from __future__ import annotations

from zenlake.rest.service import RestService, start

__all__ = ["RestService", "start"]
