"""Options that several commands share: the fields of a dataclass, given to a command as one value.

@dataclass(frozen=True)
class Where:
    lake: Annotated[str, typer.Option("--lake")] = "zenlake-data/lake"

def show(where: Where, name: str) -> None: ...

app.command()(with_options(Where, show))       # show NAME [--lake …]
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Any, get_type_hints

__all__ = ["with_options"]


def with_options(options: type[Any], command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that has the fields of a dataclass as options, after its own parameters.

    `command` gets them as its first argument.
    """
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    types = get_type_hints(options, include_extras=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    shared = [
        inspect.Parameter(field.name, kind, default=field.default, annotation=types[field.name])
        for field in fields(options)
    ]

    @wraps(command)
    def run(**given: object) -> None:
        gathered = options(**{one.name: given.pop(one.name) for one in shared})
        command(gathered, **given)

    parameters = [parameter.replace(kind=kind) for parameter in own] + shared
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
