"""What of a configuration can be changed while a node runs, and how that is done.

Each change is checked as a whole configuration first. A change that is refused changes nothing,
is told in the log and counted.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

from zenlake.config import Config
from zenlake.config.load import segments
from zenlake.config.model import Settings
from zenlake.config.problem import ConfigWarning
from zenlake.engine.services import SESSION_SERVICES, change_services
from zenlake.engine.settings import connect_endpoints
from zenlake.errors import ConfigError, LocalError, ZError
from zenlake.routing.policy import Policy

if TYPE_CHECKING:
    from zenlake.engine.runtime import Runtime

log = logging.getLogger("zenlake.admin")

#: How long new places to listen on may take, in seconds.
PATIENCE = 10.0


class Fixed(LocalError):
    """It cannot be changed while the node runs."""


def change(runtime: Runtime, path: str, text: str | None) -> None:
    """Give a key of a running node's configuration a value (JSON5), or take its value away.

    Raises `ConfigError` if the configuration would not be valid, `Fixed` if it would be and the
    node would have to be started anew.
    """
    where = "/".join(segments(path))
    if any(where == path or where.startswith(f"{path}/") for path in SERVED):
        config = _changed(runtime.config, where, text)
        with runtime.lock:
            runtime.config = config
            runtime.settings = config.resolved
        change_services(runtime, where, config)
        return
    apply = _change_of(where)
    if apply is None:
        raise Fixed(
            f"'{where}' cannot be changed while the node runs: change its file and start it "
            f"again. What can be changed: {', '.join((*CHANGES, *SERVED))}"
        )
    config = _changed(runtime.config, where, text)
    settings = config.resolved
    apply(runtime, settings)
    with runtime.lock:
        runtime.config = config
        runtime.settings = settings


def _changed(config: Config, where: str, text: str | None) -> Config:
    changed = copy(config)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConfigWarning)
        if text is None:
            changed.remove(where)
        else:
            changed.insert_json5(where, text)
    return changed


def _change_of(where: str) -> Callable[[Runtime, Settings], None] | None:
    for path, apply in CHANGES.items():
        if where == path or where.startswith(f"{path}/"):
            return apply
    return None


def _connect(runtime: Runtime, settings: Settings) -> None:
    with runtime.locked() as node:
        node.change_endpoints(connect_endpoints(settings), time.monotonic())


def _listen(runtime: Runtime, settings: Settings) -> None:
    loop = runtime.loop
    loop.run(runtime.listeners.change(loop.loop, settings), PATIENCE)
    with runtime.locked() as node:
        node.change_settings(replace(node.settings, locators=runtime.listeners.locators()))


def _policy(runtime: Runtime, settings: Settings) -> None:
    policy = Policy.of(settings)
    with runtime.locked() as node:
        node.change_settings(replace(node.settings, policy=policy))


def _weights(runtime: Runtime, settings: Settings) -> None:
    weights = tuple(
        (bytes(weight.dst_zid), weight.weight)
        for weight in settings.routing.router.linkstate.transport_weights
    )
    with runtime.locked() as node:
        node.change_settings(replace(node.settings, link_weights=weights))


def _shown_only(runtime: Runtime, settings: Settings) -> None:
    """Nobody obeys it: it is only shown."""


CHANGES: dict[str, Callable[[Runtime, Settings], None]] = {
    "connect/endpoints": _connect,
    "listen/endpoints": _listen,
    "access_control": _policy,
    "downsampling": _policy,
    "low_pass_filter": _policy,
    "qos/network": _policy,
    "routing/router/linkstate/transport_weights": _weights,
    "metadata": _shown_only,
}
"""What can be changed, by the beginning of its path."""

SERVED = tuple(path for path, _ in SESSION_SERVICES.values())
"""What services obey, at any time."""


def try_change(runtime: Runtime, path: str, text: str | None) -> str:
    """Change a key; gives the reason if it was refused, else nothing. Never raises."""
    value = "its default" if text is None else "a new value"
    try:
        change(runtime, path, text)
    except Fixed as error:
        log.warning("refused: %s", error)
        return "fixed"
    except ConfigError as error:
        log.warning("refused: %s", error)
        return "invalid"
    except (ZError, TimeoutError) as error:
        log.warning("refused: %s: %s", path, error)
        return "failed"
    log.info("configuration: %s has %s", path, value)
    return ""
