"""Ports that ask nobody for a name or a password, and the option that opens them to others."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Annotated, Final

import typer

from zenlake.errors import ConfigError

__all__ = ["AllowAnonymous", "AnonymousPort", "refuse_others"]


class AnonymousPort(StrEnum):
    """A port that has no users, by the option that opens it."""

    HTTP = "http"
    SPARK_CONNECT = "spark-connect"


#: Actions that anybody who reaches the port may do, for the error message.
OPENED: Final = {
    AnonymousPort.HTTP: "reads the status and the metrics",
    AnonymousPort.SPARK_CONNECT: "runs any program in this Spark, and reads and changes all rows",
}

AllowAnonymous = Annotated[
    list[AnonymousPort] | None,
    typer.Option(
        "--allow-anonymous",
        help="Let --http or --spark-connect listen for other machines, too. Neither asks anybody "
        "for a name or a password. May be repeated.",
        show_default=False,
    ),
]


def refuse_others(
    port: AnonymousPort, host: str, allowed: Collection[AnonymousPort] | None
) -> None:
    """Raise if other machines reach `host` and no option allows that for this port."""
    from zenlake.values.loopback import is_within_machine

    bare = host.strip("[]")
    if port in (allowed or ()):
        return
    if is_within_machine(f"tcp/{f'[{bare}]' if ':' in bare else bare}:0"):
        return
    raise ConfigError(
        f"--{port.value} would listen on {host}: whoever reaches that address {OPENED[port]}, and "
        f"is asked for no name or password; listen on 127.0.0.1, or add --allow-anonymous "
        f"{port.value} where only those reach it who may"
    )
