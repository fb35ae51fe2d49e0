"""A server of the Model Context Protocol, on the standard streams, made with its Python SDK."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Final, ParamSpec

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from zenlake import __version__
from zenlake.errors import ZError

if TYPE_CHECKING:
    from zenlake.agents.asking import Agent

__all__ = ["server"]

P = ParamSpec("P")
INSTRUCTIONS: Final = """\
A Zenoh bus: values under keys such as robot/7/battery, and a lake that remembers them in tables.
Begin with list_keys and list_tables. get asks for values of now, look_back and as_of for the past,
sql for anything that needs counting. Every answer has a `proof`: `complete` is true if all samples
came, false if some are missing (`gaps` says which), null if nobody can know; `cut` says if rows
were left out. Tell people when an answer is not complete.
"""
Keys = Annotated[str, Field(description="A key expression: * is one chunk, ** any number.")]
Limit = Annotated[int, Field(ge=1, le=10_000, description="The most rows that come back.")]
Instant = "such as 2026-01-31T12:00:00Z or now(-1h)"


def server(asking: Agent, *, may_write: bool = False) -> MCPServer[Any]:
    """The server; with `may_write` programs may also publish and delete."""
    made: MCPServer[Any] = MCPServer(
        "zenlake", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING"
    )
    looks = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    changes = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=False)

    def list_keys(expression: Keys = "**", limit: Limit = 200) -> dict[str, Any]:
        """List keys that have a value now, with encoding and time."""
        return asking.keys(expression, limit)

    def list_tables() -> dict[str, Any]:
        """List the tables of the lake with columns, types and numbers of rows."""
        return asking.tables()

    def get(
        selector: Annotated[str, Field(description="A key expression, or one with parameters.")],
        limit: Limit = 200,
    ) -> dict[str, Any]:
        """Get the values of keys as they are now."""
        return asking.get(selector, limit)

    def sql(
        query: Annotated[str, Field(description="One SELECT in the SQL of Spark.")],
        limit: Limit = 200,
    ) -> dict[str, Any]:
        """Ask the lake's tables in SQL; only SELECT, over tables that list_tables shows."""
        return asking.sql(query, limit)

    def look_back(
        key: Keys,
        since: Annotated[str, Field(description=f"The beginning, {Instant}.")],
        until: Annotated[str, Field(description="The end; now, if not said.")] = "",
        where: Annotated[str, Field(description="A condition, such as battery < 20.")] = "",
        limit: Limit = 200,
    ) -> dict[str, Any]:
        """Get every sample that was published under keys in a span of time, oldest first."""
        return asking.history(key, since, until, where, limit)

    def as_of(
        key: Keys,
        instant: Annotated[str, Field(description=f"The instant, {Instant}.")],
        limit: Limit = 200,
    ) -> dict[str, Any]:
        """Get the values that keys had at an instant."""
        return asking.as_of(key, instant, limit)

    def explain_gaps(key: Keys = "**") -> dict[str, Any]:
        """Explain which samples never came, from whom, and what cannot be known."""
        return asking.gaps(key)

    def put(
        key: Annotated[str, Field(description="A key without wildcards.")],
        value: Annotated[str, Field(description="The payload.")],
        encoding: Annotated[str, Field(description="What the payload is.")] = "application/json",
    ) -> dict[str, Any]:
        """Publish a value: everything that listens acts on it at once."""
        return asking.put(key, value, encoding)

    def delete(
        key: Annotated[str, Field(description="A key without wildcards.")],
    ) -> dict[str, Any]:
        """Publish that a key has no value any more."""
        return asking.delete(key)

    for tool in (list_keys, list_tables, get, sql, look_back, as_of, explain_gaps):
        made.add_tool(_with_tool_errors(tool), annotations=looks)
    if may_write:
        for change in (put, delete):
            made.add_tool(_with_tool_errors(change), annotations=changes)
    return made


def _with_tool_errors(tool: Callable[P, dict[str, Any]]) -> Callable[P, dict[str, Any]]:
    """The tool, raising what the library refuses as the `ToolError` that a client is shown."""

    @wraps(tool)
    def run(*args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
        try:
            return tool(*args, **kwargs)
        except (ZError, OSError) as error:
            raise ToolError(str(error)) from error

    return run
