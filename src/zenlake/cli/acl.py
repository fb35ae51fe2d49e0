"""`zenlake acl explain`: would this message pass, and which rule says so?"""

from __future__ import annotations

import json
import warnings
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from zenlake.cli.pages import group, page

if TYPE_CHECKING:
    from zenlake.config import Config
    from zenlake.routing.policy import Explanation, Subject

WHO = ("interface", "cert_common_name", "username", "link_protocol", "zid")
"""What can be known of a neighbour; the first two may be given several times."""


class Flow(StrEnum):
    """Which way the message goes, seen from the node that has the configuration."""

    INGRESS = "ingress"
    EGRESS = "egress"


class Op(StrEnum):
    """What the message does."""

    PUT = "put"
    DELETE = "delete"
    QUERY = "query"
    REPLY = "reply"
    DECLARE_SUBSCRIBER = "declare_subscriber"
    DECLARE_QUERYABLE = "declare_queryable"
    LIVELINESS_TOKEN = "liveliness_token"
    LIVELINESS_QUERY = "liveliness_query"
    DECLARE_LIVELINESS_SUBSCRIBER = "declare_liveliness_subscriber"


acl = group("Ask a configuration what its access control decides.")


@page(
    acl,
    "explain",
    "zenlake acl explain --config router.json5 --op put --key robot/1/pose",
    "zenlake acl explain --config router.json5 --op query --key 'robot/**' \\",
    "    --who username=alice --flow ingress",
)
def explain(
    file: Annotated[
        str, typer.Option("--config", metavar="FILE", help="The configuration; - reads stdin.")
    ],
    op: Annotated[
        Op,
        typer.Option(
            "--op",
            metavar="MESSAGE",
            help=f"What the message does: {', '.join(Op)}.",
        ),
    ],
    key: Annotated[
        str, typer.Option("--key", metavar="KEYEXPR", help="The key expression of the message.")
    ],
    who: Annotated[
        list[str] | None,
        typer.Option(
            "--who",
            metavar="PROPERTY=VALUE",
            help=f"A property of the neighbour: {', '.join(WHO)}; repeatable. Without any, "
            "nothing is known of it.",
            show_default=False,
        ),
    ] = None,
    flow: Annotated[
        Flow | None,
        typer.Option(
            "--flow",
            metavar="FLOW",
            help="Only what the neighbour sends (ingress) or is sent (egress).  [default: both]",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say whether a message would pass, and which rule decides.

    Ends with 0 if it passes, 1 if it is denied in a flow that was asked about, 2 if the question
    makes no sense.
    """
    from zenlake.errors import ConfigError, KeyExprError
    from zenlake.keys import check
    from zenlake.routing.policy import FLOWS, KINDS, Policy

    try:
        config = _read(file)
        check(key)
    except ConfigError as error:
        typer.echo(f"zenlake: {error}", err=True)
        raise typer.Exit(2) from None
    except KeyExprError as error:
        raise typer.BadParameter(str(error)) from None
    access = Policy.of(config.resolved).access_of(_subject(who or []))
    if access is None:
        _tell_disabled(op.value, key, as_json)
        return
    flows = range(len(FLOWS)) if flow is None else [FLOWS.index(flow.value)]
    decisions = [access.explain(number, KINDS.index(op.value), key) for number in flows]
    if as_json:
        typer.echo(
            json.dumps({"enabled": True, "decisions": [_facts(one) for one in decisions]}, indent=2)
        )
    else:
        typer.echo("\n".join([line for one in decisions for line in _lines(one)]))
    if not all(one.allowed for one in decisions):
        raise typer.Exit(1)


def _read(file: str) -> Config:
    import sys

    from zenlake.config import Config, ConfigWarning

    with warnings.catch_warnings():
        # Keys that have no effect yet are not what was asked about.
        warnings.simplefilter("ignore", ConfigWarning)
        if file == "-":
            return Config.from_bytes(sys.stdin.buffer.read(), "<stdin>")
        return Config.from_file(file)


def _subject(words: list[str]) -> Subject:
    from zenlake.clock import ZenohId
    from zenlake.errors import LocatorError
    from zenlake.routing.policy import Subject

    known: dict[str, list[str]] = {name: [] for name in WHO}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not value or name not in known:
            raise typer.BadParameter(
                f"'{word}' is no property of a neighbour; write one of "
                + ", ".join([f"{name}=…" for name in WHO])
            )
        known[name].append(value)
    for name in WHO[2:]:
        if len(known[name]) > 1:
            raise typer.BadParameter(f"a neighbour has one {name}, not {len(known[name])}")
    try:
        zid = ZenohId.parse(known["zid"][0]) if known["zid"] else None
    except LocatorError as error:
        raise typer.BadParameter(str(error)) from None
    return Subject(
        interfaces=tuple(known["interface"]),
        cert_common_names=tuple(known["cert_common_name"]),
        username=known["username"][0] if known["username"] else None,
        link_protocol=known["link_protocol"][0] if known["link_protocol"] else None,
        zid=zid,
    )


def _tell_disabled(op: str, key: str, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"enabled": False, "decisions": []}, indent=2))
        return
    typer.echo(f"ALLOW {op} on {key}: access control is not enabled (access_control/enabled)")


def _lines(decision: Explanation) -> list[str]:
    word = "ALLOW" if decision.allowed else "DENY"
    lines = [f"{word} {decision.message} on {decision.key}, {decision.flow}: {decision.sentence()}"]
    # The rest of what was asked; one that allows is enough, and then the others do not matter.
    others = [ground for ground in decision.grounds if ground is not decision.deciding]
    lines.extend(f"  also: {ground.sentence()}" for ground in others)
    return lines


def _facts(decision: Explanation) -> dict[str, object]:
    deciding = decision.deciding
    return {
        "flow": decision.flow,
        "message": decision.message,
        "key": decision.key,
        "allowed": decision.allowed,
        "why": decision.sentence(),
        "rule": None if deciding is None else deciding.rule,
        "key_expr": None if deciding is None else deciding.key_expr,
        "subject": None if deciding is None else deciding.subject,
        "policy": None if deciding is None else deciding.policy,
        "grounds": [
            {
                "allowed": ground.allowed,
                "subjects": list(ground.subjects),
                "rule": ground.rule,
                "key_expr": ground.key_expr,
                "subject": ground.subject,
                "policy": ground.policy,
            }
            for ground in decision.grounds
        ],
    }
