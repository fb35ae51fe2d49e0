from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.links.conftest import Run
from tests.links.watching import Visitors, connected
from zenlake.errors import LinkError


def test_the_path_is_removed_at_the_end(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.sock"

    async def scene() -> None:
        visitors = Visitors()
        await visitors.listen(f"unixsock-stream/{path}")
        assert path.is_socket()
        visitors.close()
        assert not path.exists()

    run(scene())


def test_a_path_that_is_another_sockets_by_now_is_left(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.sock"

    async def scene() -> None:
        visitors = Visitors()
        await visitors.listen(f"unixsock-stream/{path}")
        path.rename(tmp_path / "old.sock")
        path.write_text("mine")
        visitors.close()
        assert path.read_text() == "mine"

    run(scene())


def test_a_live_listener_keeps_its_path(run: Run, tmp_path: Path) -> None:
    async def scene() -> None:
        visitors = Visitors()
        await visitors.listen(f"unixsock-stream/{tmp_path}/a.sock")
        with pytest.raises(LinkError, match="another process listens at"):
            await Visitors().listen(f"unixsock-stream/{tmp_path}/a.sock")
        here = await connected(f"unixsock-stream/{tmp_path}/a.sock")
        here.link.close()
        visitors.close()

    run(scene())


def test_what_a_dead_process_left_is_replaced(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))

    async def scene() -> None:
        visitors = Visitors()
        await visitors.listen(f"unixsock-stream/{path}")
        here = await connected(f"unixsock-stream/{path}")
        await visitors.until(1)
        here.link.close()
        visitors.close()

    run(scene())


def test_a_file_is_not_touched(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("words")

    async def scene() -> None:
        with pytest.raises(LinkError, match="is not a socket"):
            await Visitors().listen(f"unixsock-stream/{path}")
        assert path.read_text() == "words"

    run(scene())


def test_nobody_there_is_said_with_the_path(run: Run, tmp_path: Path) -> None:
    async def scene() -> None:
        with pytest.raises(LinkError, match=r"cannot connect to .*a\.sock: No such file"):
            await connected(f"unixsock-stream/{tmp_path}/a.sock")
        with pytest.raises(LinkError, match=r"cannot listen at .*: No such file"):
            await Visitors().listen(f"unixsock-stream/{tmp_path}/missing/a.sock")
        with pytest.raises(LinkError, match="too long"):
            await Visitors().listen(f"unixsock-stream/{tmp_path}/{'x' * 120}")
        (tmp_path / "file").write_text("")
        with pytest.raises(LinkError, match="cannot look at"):
            await Visitors().listen(f"unixsock-stream/{tmp_path}/file/a.sock")

    run(scene())


def test_a_path_may_be_relative(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def scene() -> None:
        visitors = Visitors()
        listening = await visitors.listen("unixsock-stream/a.sock")
        assert listening.locators() == ["unixsock-stream/a.sock"]
        assert os.path.exists("a.sock")
        visitors.close()

    run(scene())
