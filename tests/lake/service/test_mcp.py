"""`zenlake mcp`, asked by the official SDK's own client, over a router, a recorder and a lake."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client, StdioServerParameters

import zenlake
from tests.api.sessions import client_of, connected, listening, where
from tests.journal.recording import until_rows
from tests.lake.journals import Here
from tests.waiting import until
from zenlake.journal.options import Options
from zenlake.journal.recorder import Recorder
from zenlake.lake import LakeConfig, Pipeline
from zenlake.lake.model.typed_table import TypedTable
from zenlake.lake.service.bus_link import BusLink
from zenlake.lake.service.start import serve_lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop, pytest.mark.timeout(240)]

NUMBERS = [0, 1, 2, 3, 6, 7]
"""The numbers of the samples that came: 4 and 5 are missing."""
CONFIG = LakeConfig(tables=(TypedTable("state", "robot/${id:*}/state"),))
READS = {"list_keys", "list_tables", "get", "sql", "look_back", "as_of", "explain_gaps"}


@dataclass
class World:
    """A router with a recorder and a lake, and the instant after the third sample."""

    place: str
    then: str


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("mcp")
    options = Options(("robot/**",), str(folder / "journal"), name="j", fsync="5ms", heal=False)
    with (
        listening(mode='"router"', timestamping__enabled="true") as node,
        Recorder(node, options) as recorder,
        connected(node, mode='"client"') as robot,
    ):
        then = ""
        with robot.declare_publisher("robot/1/state", encoding="application/json") as publisher:
            until(lambda: publisher.matching_status.matching)
            for number in NUMBERS:
                source = zenlake.SourceInfo(publisher.id, number)
                publisher.put(json.dumps({"battery": 90 - number}), source_info=source)
                if number == 2:
                    until_rows(recorder, 3)
                    then = f"{node.new_timestamp().get_time():%Y-%m-%dT%H:%M:%S.%fZ}"
        until_rows(recorder, len(NUMBERS))
        pipeline = Pipeline(str(folder / "lake"), recorder.journal.path, Here(), CONFIG)
        pipeline.step()
        with (
            BusLink(client_of(node)) as link,
            serve_lake(spark, pipeline, link.session, lambda told: None),
        ):
            until(lambda: recorder._answers is not None and recorder._answers.lake)
            yield World(where(node), then)


def asked(place: str, ask: Callable[[Client], Awaitable[None]], *more: str) -> None:
    """Start the command as an assistant would, and speak with it."""
    words = ["-m", "zenlake", "mcp", "-m", "client", "-e", place, "--no-multicast-scouting"]
    path = os.pathsep.join(sys.path)
    program = StdioServerParameters(
        command=sys.executable, args=[*words, *more], env={"PYTHONPATH": path}
    )

    async def run() -> None:
        async with Client(program) as client:
            await ask(client)

    asyncio.run(run())


async def told(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    found = result.structured_content
    assert isinstance(found, dict)
    return found


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return "".join(getattr(part, "text", "") for part in result.content)


def test_every_tool_answers_with_its_proof_and_none_of_them_writes(world: World) -> None:
    async def ask(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == READS
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)

        found = await told(client, "list_keys", expression="robot/**")
        assert [row["key"] for row in found["rows"]] == ["robot/1/state"]
        assert "value" not in found["rows"][0]

        found = await told(client, "list_tables")
        assert found["tables"]["samples"]["columns"]["key"]
        assert found["tables"]["samples"]["rows"] == len(NUMBERS)

        found = await told(client, "get", selector="robot/1/*")
        assert [row["value"] for row in found["rows"]] == [{"battery": 83}]
        proof = found["proof"]
        assert proof["complete"] is False
        assert proof["in_words"] == "2 of 8 numbered samples are missing"
        assert proof["gaps"][0]["ranges"] == [[4, 5]]

        found = await told(client, "look_back", key="robot/**", since="now(-1h)")
        assert [row["value"]["battery"] for row in found["rows"]] == [90 - n for n in NUMBERS]
        assert found["proof"]["cut"] is None
        found = await told(
            client, "look_back", key="robot/**", since="now(-1h)", where="battery<85", limit=1
        )
        assert [row["value"]["battery"] for row in found["rows"]] == [84]
        assert "only the first 1 rows" in found["proof"]["cut"]

        found = await told(client, "as_of", key="robot/**", instant=world.then)
        assert [row["value"]["battery"] for row in found["rows"]] == [88]

        query = "SELECT key, count(*) AS n, min(battery) AS low FROM state GROUP BY key"
        found = await told(client, "sql", query=query)
        assert found["rows"] == [{"key": "robot/1/state", "n": 6, "low": 83}]
        read = found["proof"]["read"]
        assert set(read["tables"]) == {"state"}
        assert read["rows_behind"] == 0
        assert found["proof"]["expected"] == 8
        assert found["proof"]["complete"] is False

        found = await told(client, "explain_gaps", key="robot/1/**")
        assert "2 never came: numbers 4..5" in found["told"][0]
        found = await told(client, "explain_gaps", key="elsewhere/**")
        assert found["proof"]["complete"] is None

        assert "there is no table 'nothing'" in await refused(
            client, "sql", query="SELECT * FROM nothing"
        )
        assert "SELECT" in await refused(client, "sql", query="DROP TABLE samples")
        assert "a chunk is empty" in await refused(client, "get", selector="robot//x")
        assert "Unknown tool" in await refused(client, "put", key="robot/1/go", value="1")

    asked(world.place, ask)


def test_who_may_write_publishes_and_a_bus_without_a_lake_says_what_to_start() -> None:
    async def ask(client: Client) -> None:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert tools == READS | {"put", "delete"}
        await told(client, "put", key="command/go", value='{"go": true}')
        await told(client, "delete", key="command/go")
        assert "zenlake up" in await refused(client, "sql", query="SELECT 1")
        assert "nobody on this bus remembers" in await refused(
            client, "look_back", key="a/**", since="now(-1h)"
        )

    with listening(mode='"router"') as node, node.declare_subscriber("command/**") as subscriber:
        asked(where(node), ask, "--allow-writes")
        heard = [subscriber.recv().payload.to_string() for _ in range(2)]
    assert heard == ['{"go": true}', ""]
