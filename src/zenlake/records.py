"""Classes that hold values, as `dataclasses.dataclass` makes them but at a twentieth of the cost.

`dataclass` writes the methods of each class as text and compiles it: 0.7 ms a class, whenever a
program starts. `record` lets `dataclass` collect the fields and gives all classes the same
methods, which walk over these fields. Making an instance takes longer, some microseconds:
use `record` for settings and other values that are made once a session, not once a message.
In modules that mypyc compiles use `dataclass`, which mypyc knows.

    @record(frozen=True, slots=True)
    class Span:
        begin: int
        end: int

`dataclasses.fields`, `replace` and `asdict` work as ever, and so does pickling. Two things of
`dataclass` are missing: `__post_init__`, and fields that come from a class above.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, fields
from typing import TYPE_CHECKING, Any

__all__ = ["record"]


def _init(self: Any, *given: object, **named: object) -> None:
    made_of = type(self).__qualname__
    if given:
        _add_given(type(self), given, named)
    for field in fields(self):
        if field.name in named:
            value = named.pop(field.name)
        elif field.default is not MISSING:
            value = field.default
        elif field.default_factory is not MISSING:
            value = field.default_factory()
        else:
            raise TypeError(f"{made_of} needs {field.name!r}; write {field.name}=…")
        object.__setattr__(self, field.name, value)
    if named:
        raise TypeError(f"{made_of} has no field {next(iter(named))!r}")


def _add_given(made_of: Any, given: tuple[object, ...], named: dict[str, object]) -> None:
    """Add to `named` the values that were given by position."""
    names: tuple[str, ...] = made_of.__match_args__
    if len(given) > len(names):
        raise TypeError(
            f"{made_of.__qualname__} takes {len(names)} values by position, got {len(given)}"
        )
    for name, value in zip(names, given, strict=False):
        if name in named:
            raise TypeError(f"{made_of.__qualname__} got {name!r} by position and by name")
        named[name] = value


def _compared(self: Any) -> tuple[object, ...]:
    return tuple(getattr(self, field.name) for field in fields(self) if field.compare)


def _eq(self: object, other: object) -> bool:
    return _compared(self) == _compared(other) if type(other) is type(self) else NotImplemented


def _hash(self: object) -> int:
    return hash(_compared(self))


def _repr(self: Any) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_set(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[object]:
    return [getattr(self, field.name) for field in fields(self)]


def _setstate(self: Any, state: list[object]) -> None:
    for field, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


_OF_ALL: dict[str, object] = {"__init__": _init, "__repr__": _repr, "__eq__": _eq}
_OF_FROZEN: dict[str, object] = {
    "__hash__": _hash,
    "__setattr__": _refuse_set,
    "__delattr__": _refuse_delete,
    "__getstate__": _getstate,
    "__setstate__": _setstate,
}


def _record(*, slots: bool, frozen: bool = False, kw_only: bool = False) -> Callable[[Any], Any]:
    """Make a class whose annotations are its fields; the arguments are those of `dataclass`.

    Args:
        slots: Must be True; it is an argument because type checkers read it.
        frozen: Whether instances cannot be changed, and can be hashed.
        kw_only: Whether values are given by name only.
    """
    if not slots:
        raise TypeError("a record has slots; write record(slots=True)")
    methods = _OF_ALL | (_OF_FROZEN if frozen else {"__hash__": None})
    collect: Any = dataclass(init=False, repr=False, eq=False, kw_only=kw_only)

    def decorate(made_of: Any) -> Any:
        if hasattr(made_of, "__post_init__") or hasattr(made_of, "__dataclass_fields__"):
            raise TypeError(
                f"{made_of.__qualname__} has __post_init__ or fields of a class above; "
                "make it with dataclasses.dataclass"
            )
        names = tuple(field.name for field in fields(collect(made_of)))
        # Slots are given to a class when it is made, and so are methods, which is faster.
        space = methods | vars(made_of) | {"__slots__": names, "__qualname__": made_of.__qualname__}
        for name in (*names, "__dict__", "__weakref__"):
            space.pop(name, None)
        return type(made_of)(made_of.__name__, made_of.__bases__, space)

    return decorate


# To type checkers a record is a dataclass.
if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    record = _record
