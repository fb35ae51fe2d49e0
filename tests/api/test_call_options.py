"""Calls that name their options have those that `zenlake.api.call_options` declares."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

import zenlake
from tools.signatures import declared_types, definition, parameters
from zenlake import Session, ext
from zenlake.api import call_options
from zenlake.ext.subscriber import AdvancedSubscriberOptions

NAMED: list[tuple[Callable[..., object], type]] = [
    (Session.put, call_options.PutOptions),
    (Session.delete, call_options.DeleteOptions),
    (Session.declare_publisher, call_options.PublisherOptions),
    (Session.declare_subscriber, call_options.SubscriberOptions),
    (Session.declare_queryable, call_options.QueryableOptions),
    (Session.declare_querier, call_options.QuerierOptions),
    (Session.get, call_options.GetOptions),
    (zenlake.Publisher.put, call_options.PublisherPutOptions),
    (zenlake.Publisher.delete, call_options.PublisherDeleteOptions),
    (zenlake.Querier.get, call_options.QuerierGetOptions),
    (zenlake.Query.reply, call_options.ReplyOptions),
    (zenlake.Query.reply_del, call_options.ReplyDelOptions),
    (zenlake.Liveliness.get, call_options.LivelinessGetOptions),
    (ext.declare_advanced_subscriber, AdvancedSubscriberOptions),
]


@pytest.mark.parametrize(("call", "options"), NAMED, ids=[options.__name__ for _, options in NAMED])
def test_a_call_names_the_options_that_are_declared(
    call: Callable[..., object], options: type
) -> None:
    declared = declared_types(options)
    by_name = [one for one in parameters(call) if one.kind is one.KEYWORD_ONLY]
    assert {one.name: one.default for one in by_name} == dict.fromkeys(declared)
    written = definition(call).args
    assert written.kwarg is None
    types = {one.arg: ast.unparse(one.annotation) for one in written.kwonlyargs if one.annotation}
    assert types == declared


def test_every_declared_set_of_options_is_compared() -> None:
    """Sets that others are made of are compared as their parts."""
    parts = {"AnyGetOptions", "SendOptions"}
    declared = {name for name in vars(call_options) if name.endswith("Options")} - parts
    assert declared <= {options.__name__ for _, options in NAMED}


def test_an_unknown_option_of_a_put_is_a_type_error_that_names_it(alone: Session) -> None:
    publisher = alone.declare_publisher("demo/a")
    calls: list[Callable[..., object]] = [
        lambda **options: alone.put("demo/a", b"", **options),
        lambda **options: alone.try_put("demo/a", b"", **options),
        lambda **options: alone.delete("demo/a", **options),
        lambda **options: publisher.put(b"", **options),
        lambda **options: publisher.try_put(b"", **options),
        lambda **options: publisher.delete(**options),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="'urgency'"):
            call(urgency=1)
