"""Turning on the log, by the variable that Zenoh's programs know."""

from __future__ import annotations

import logging
import os
from typing import Any

from zenlake.printable import printable, printable_lines

__all__ = ["LineFormatter", "init_log_from_env_or", "try_init_log_from_env"]

#: The level of each word; Python has none below DEBUG of its own.
LEVELS = {
    "trace": 5,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL + 10,
}
VARIABLE = "RUST_LOG"
LIBRARIES = ("asyncio", "uvicorn")
"""Loggers of libraries that write what strangers sent; without a handler Python would print it."""


class LineFormatter(logging.Formatter):
    """Writes one line for each message, whatever keys and names of strangers are in it.

    Only a traceback behind it has lines of its own.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        return printable(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:
        """Return a traceback."""
        return printable_lines(super().formatException(ei))


def try_init_log_from_env() -> None:
    """Log as the variable RUST_LOG says; if it is not set, change nothing."""
    text = os.environ.get(VARIABLE)
    if text:
        _apply(text)


def init_log_from_env_or(level: str) -> None:
    """Log as the variable RUST_LOG says, or at `level`: off, error, warn, info, debug, trace."""
    _apply(os.environ.get(VARIABLE) or level)


def levels_of(text: str) -> dict[str, int]:
    """The levels that `info,zenoh::net=debug` asks for, by logger; what has no level is traced."""
    levels: dict[str, int] = {}
    for directive in text.split(","):
        target, equals, word = directive.strip().partition("=")
        if not equals:
            if target.lower() in LEVELS:
                levels["zenlake"] = LEVELS[target.lower()]
                continue
            word = "trace"
        if target and word.strip().lower() in LEVELS:
            levels[logger_of(target)] = LEVELS[word.strip().lower()]
    return levels


def logger_of(target: str) -> str:
    """The logger for a target: `zenoh::net` and `zenlake.engine` alike."""
    name = target.strip().replace("::", ".")
    head, _, rest = name.partition(".")
    if head.startswith("zenoh") or head == "zenlake":
        # Their rooms are not ours: a target within Zenoh means all of it.
        return f"zenlake.{rest}" if head == "zenlake" and rest else "zenlake"
    return name


def _apply(text: str) -> None:
    logging.addLevelName(LEVELS["trace"], "TRACE")
    for name, level in levels_of(text).items():
        logging.getLogger(name).setLevel(level)
    root = logging.getLogger()
    if root.handlers or logging.getLogger("zenlake").handlers:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    for name in ("zenlake", *LIBRARIES):
        log = logging.getLogger(name)
        if not log.handlers:
            log.addHandler(handler)
