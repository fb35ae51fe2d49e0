"""A starlette that does nothing, served as ours is: what HTTP costs by itself."""

from __future__ import annotations

import asyncio
import sys

import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from zenlake.engine.loop import new_loop

ANSWER = b'[{"key":"demo/a","value":{"battery":80},"encoding":"application/json","timestamp":null}]'


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    assert scope["type"] == "http"
    request = Request(scope, receive)
    assert request.method
    await Response(ANSWER, media_type="application/json")(scope, receive, send)


def main(port: int) -> None:
    config = uvicorn.Config(
        app, port=port, loop="none", lifespan="off", log_config=None, access_log=False
    )
    loop = new_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(uvicorn.Server(config).serve())


if __name__ == "__main__":
    main(int(sys.argv[1]))
