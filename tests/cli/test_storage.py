"""`zenlake storage`, beside a router in this process."""

from __future__ import annotations

import json
from pathlib import Path

import zenlake
from tests.api.sessions import listening, where
from tests.cli.programs import run, run_alone
from tests.waiting import until


def test_a_storage_is_made_filled_exported_moved_and_removed(tmp_path: Path) -> None:
    with listening(
        mode='"router"', adminspace__enabled="true", adminspace__permissions__write="true"
    ) as router:
        there = ("-m", "client", "-e", where(router))
        code, _ = run("storage", "ls", *there)
        assert code == 3, "there is none"
        files = ("--volume", "fs", "--option", f"dir={tmp_path}")
        assert run("storage", "add", "one", "-k", "a/**", *files, *there)[0] == 0
        code, lines = run("put", "-k", "a/x", "-p", "kept", "--ack", *there)
        assert code == 0
        assert "/" in lines[0], "its timestamp"
        code, lines = run("storage", "ls", "--json", *there)
        assert [json.loads(line)["keys"] for line in lines] == [1]
        assert "put a/x: kept" in run("storage", "get", "one", *there)[1][0]
        saved = tmp_path.with_suffix(".jsonl")
        assert run("storage", "export", "one", str(saved), *there)[0] == 0
        assert run("delete", "-k", "a/x", *there)[0] == 0
        assert run("storage", "rm", "one", *there)[0] == 0
        assert run("storage", "get", "one", *there)[0] == 3
        assert run("storage", "add", "two", "-k", "a/**", *there)[0] == 0
        assert run("storage", "import", str(saved), *there)[0] == 0
        assert "put a/x: kept" in run("storage", "get", "two", *there)[1][0]
    code, lines = run_alone("storage", "verify", "one", *files)
    assert lines == ["0 keys: sound"]
    assert code == 0


def test_encodings_come_back_from_an_export_as_they_were(tmp_path: Path) -> None:
    encodings: dict[str, tuple[int, bytes | None]] = {
        "a/json": (5, b"pose"),
        "a/newer": (4000, b"v2"),
        "a/custom": (65535, b"text/plain"),
        "a/bytes": (4000, b"\xff\x00"),
    }
    saved = tmp_path / "saved.jsonl"
    with listening(
        mode='"router"', adminspace__enabled="true", adminspace__permissions__write="true"
    ) as router:
        there = ("-m", "client", "-e", where(router))
        assert run("storage", "add", "one", "-k", "a/**", *there)[0] == 0
        for key, (id, schema) in encodings.items():
            router.put(key, b"x", encoding=zenlake.Encoding.from_wire(id, schema))
        until(lambda: len(list(router.get("a/*"))) == 4)
        assert run("storage", "export", "one", str(saved), *there)[0] == 0
        assert run("storage", "rm", "one", *there)[0] == 0
        assert run("storage", "add", "two", "-k", "a/**", *there)[0] == 0
        assert run("storage", "import", str(saved), *there)[0] == 0
        until(lambda: len(list(router.get("a/*"))) == 4)
        found = [reply.ok for reply in router.get("a/*") if reply.ok is not None]
    assert {str(s.key_expr): (s.encoding.id, s.encoding.schema) for s in found} == encodings
    lines = [json.loads(line) for line in saved.read_text().splitlines()]
    assert {line["key"]: line["encoding"] for line in lines} == {
        "a/json": "application/json;pose",
        "a/newer": "unknown(4000);v2",
        "a/custom": "unknown(65535);text/plain",
        "a/bytes": "unknown(4000);\N{REPLACEMENT CHARACTER}FF\0",
    }


def test_what_cannot_be_is_said_in_a_line(tmp_path: Path) -> None:
    with listening(
        mode='"router"', adminspace__enabled="true", adminspace__permissions__write="true"
    ) as router:
        there = ("-m", "client", "-e", where(router))
        code, lines = run("storage", "add", "x", "-k", "a/**", "--volume", "sqlit", *there)
        assert code == 1
        code, lines = run("storage", "rm", "nothing", *there)
        assert code == 3
    code, lines = run_alone("storage", "verify", "x", "--volume", "fs", "--option", "dri=x")
    assert code == 2
    assert lines[0].startswith("zenlake: the volume 'fs' has no option 'dri'; did you mean 'dir'?")


def test_an_export_that_fails_says_why_and_leaves_the_older_one(tmp_path: Path) -> None:
    """The disk of a storage is damaged under it."""
    with listening(
        mode='"router"', adminspace__enabled="true", adminspace__permissions__write="true"
    ) as router:
        there = ("-m", "client", "-e", where(router))
        file = ("--volume", "sqlite", "--option", f"dir={tmp_path}")
        assert run("storage", "add", "one", "-k", "a/**", *file, *there)[0] == 0
        assert run("put", "-k", "a/x", "-p", "kept", "--ack", *there)[0] == 0
        for part in tmp_path.glob("one.sqlite*"):
            part.write_bytes(b"nothing that was here" * 1000)
        saved = tmp_path / "saved.jsonl"
        saved.write_text("older")
        code, lines = run("storage", "export", "one", str(saved), *there)
        assert code == 1
        assert "'one' was not read to its end" in lines[-1]
        assert saved.read_text() == "older"
        assert list(tmp_path.glob("*.part")) == []
