from __future__ import annotations

from dataclasses import fields
from typing import Any

from zenlake.config.model_services import JournalService, RetainedKeys
from zenlake.journal.options import Options, RetainRule
from zenlake.journal.service import SAME, options_of
from zenlake.keys import KeyExpr


def test_a_recorder_does_by_itself_what_a_configuration_says_by_itself() -> None:
    service = JournalService(name=KeyExpr("j"), dir="/x", key_exprs=(KeyExpr("a/**"),))
    alone = Options(("a/**",), "/x", name="j")
    assert options_of(service) == alone


def test_every_key_of_a_configured_journal_reaches_its_recorder() -> None:
    assert {field.name for field in fields(JournalService)} == {
        "name",
        "dir",
        "key_exprs",
        "retain",
        *SAME,
    }
    told: dict[str, Any] = {
        "partitions": 7,
        "fsync": "never",
        "segment_bytes": 1,
        "segment_age": 2.0,
        "retain_bytes": 3,
        "retain_age": 4.0,
        "hold_bytes": 12,
        "on_full": "drop",
        "answer": False,
        "answer_time": False,
        "complete": True,
        "heal": False,
    }
    rules = (RetainedKeys(keys=KeyExpr("c/**"), age=5.0),)
    service = JournalService(
        name=KeyExpr("k"), dir="/y", key_exprs=(KeyExpr("c"),), retain=rules, **told
    )
    options = options_of(service)
    assert {name: getattr(options, name) for name in SAME} == told
    assert (options.key_exprs, options.path, options.name) == (("c",), "/y", "k")
    assert options.retain == (RetainRule("c/**", 5.0),)
