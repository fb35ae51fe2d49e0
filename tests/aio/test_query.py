from __future__ import annotations

import asyncio
import gc

import pytest

import zenlake
from tests.aio.sessions import joined, matched, run
from tests.api.sessions import config
from zenlake import aio


def values(replies: list[zenlake.Reply]) -> list[str]:
    return [reply.ok.payload.to_string() if reply.ok else "error" for reply in replies]


def test_answers_are_iterated_until_the_last() -> None:
    async def main() -> None:
        async with (
            joined() as (here, there),
            here.declare_queryable("q/*") as queryable,
            there.declare_querier("q/*") as querier,
        ):
            await matched(querier)

            async def answer() -> None:
                async for query in queryable:
                    async with query:
                        await query.reply("q/a", "1")
                        await query.reply("q/b", query.parameters.get("n") or "2")
                        await query.reply_del("q/c")
                        await query.reply_err("no")

            answering = asyncio.create_task(answer())
            got = values([reply async for reply in there.get("q/*?n=5")])
            assert sorted(got) == ["", "1", "5", "error"]
            got = values([reply async for reply in await querier.get()])
            assert sorted(got) == ["", "1", "2", "error"]
            answering.cancel()
            await asyncio.wait([answering])

    run(main)


def test_a_coroutine_function_answers() -> None:
    async def main() -> None:
        async with aio.open(config()) as session:

            async def answer(query: aio.Query) -> None:
                await query.reply(query.key_expr, query.payload or b"")

            await session.declare_queryable("q", answer)
            # The query is finalised when the function has let go of it.
            assert values([r async for r in session.get("q", payload="x")]) == ["x"]
            with pytest.raises(TypeError, match="give a queryable a coroutine function"):
                session.declare_queryable("q", lambda query: None)

    run(main)


def test_many_answers_wait_for_room() -> None:
    async def main() -> None:
        async with (
            joined() as (here, there),
            there.declare_querier("q/**", consolidation=zenlake.ConsolidationMode.NONE) as querier,
        ):
            most = 0

            async def answer(query: aio.Query) -> None:
                nonlocal most
                (pump,) = here.runtime.pumps
                for n in range(200):
                    await query.reply(f"q/{n}", bytes(60_000))
                    most = max(most, pump.outbox.held)

            await here.declare_queryable("q/**", answer)
            await matched(querier)
            assert len([reply async for reply in querier.get()]) == 200
            assert most < 200 * 60_000 / 4

    run(main)


def test_a_question_ends_with_its_block_or_its_last_reference() -> None:
    async def main() -> None:
        async with aio.open(config()) as session:
            held: list[aio.Query] = []

            async def keep(query: aio.Query) -> None:
                held.append(query)

            await session.declare_queryable("q", keep)
            async with session.get("q") as replies:
                while not held:
                    await asyncio.sleep(0)
            assert session.runtime.node.local.gets == set()
            assert [reply async for reply in replies] == []
            replies = await session.get("q")
            assert len(session.runtime.node.local.gets) == 1
            del replies
            gc.collect()
            await asyncio.sleep(0)
            assert session.runtime.node.local.gets == set()

    run(main)


def test_a_token_ends_questions() -> None:
    async def main() -> None:
        async with aio.open(config()) as session, session.declare_queryable("q") as queryable:
            token = zenlake.CancellationToken()
            asked = session.get("q", cancellation_token=token)
            query = await queryable.recv()
            token.cancel()
            assert [reply async for reply in asked] == []
            with pytest.raises(zenlake.ZError, match="cancelled"):
                session.get("q", cancellation_token=token)
            await query.drop()

    run(main)


def test_answers_may_be_given_to_a_function() -> None:
    async def main() -> None:
        async with aio.open(config()) as session:

            async def answer(query: aio.Query) -> None:
                async with query:
                    await query.reply("q", "x")

            await session.declare_queryable("q", answer)
            heard: asyncio.Queue[zenlake.Reply] = asyncio.Queue()
            asked = await session.get("q", heard.put_nowait)
            assert values([await heard.get()]) == ["x"]
            with pytest.raises(TypeError, match="nothing to take"):
                aiter(asked)
            await session.get("q", heard.put)
            assert values([await heard.get()]) == ["x"]

    run(main)


def test_a_query_shows_what_was_asked() -> None:
    async def main() -> None:
        async with aio.open(config()) as session, session.declare_queryable("q") as queryable:
            asked = session.get("q?a=1", payload="p", attachment="x", encoding="text/plain")
            async with await queryable.recv() as query:
                assert str(query) == "Query(q?a=1)"
                assert repr(query) == "<Query q?a=1>"
                assert str(query.selector) == "q?a=1"
                assert query.payload == b"p"
                assert query.attachment == b"x"
                assert str(query.encoding) == "text/plain"
                assert query.source_info is None
                assert query.timestamp_stack is None
                assert query.accepts_replies() is zenlake.ReplyKeyExpr.MATCHING_QUERY
            assert [reply async for reply in asked] == []
            assert repr(asked) == "<Replies over>"

    run(main)


def test_liveliness_is_told_and_asked() -> None:
    async def main() -> None:
        async with (
            joined() as (here, there),
            there.liveliness().declare_subscriber("alive/**") as watching,
        ):
            async with here.liveliness().declare_token("alive/a"):
                sample = await watching.recv()
                assert (str(sample.key_expr), sample.kind.name) == ("alive/a", "PUT")
                alive = [reply async for reply in there.liveliness().get("alive/**")]
                assert [str(r.ok.key_expr) for r in alive if r.ok] == ["alive/a"]
            assert (await watching.recv()).kind.name == "DELETE"

    run(main)
