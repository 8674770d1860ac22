"""What messages are in memory: plain objects that cost little to make.

A value's class carries the default of every field as a class attribute, so `cls()` runs no Python
code, a field that a version lacks reads as its default, and setting an attribute is all there is to
building a message. Defaults are shared by all values and therefore immutable: absent arrays are
`()`, absent nested groups are a frozen value that refuses to be written to.
"""

from typing import Any, ClassVar, NoReturn


class Value:
    """A message, or a group of fields within one. Equal when every declared field is equal."""

    __hash__: ClassVar[None]  # type: ignore[assignment]  # mutable, as every class with __eq__
    _fields: ClassVar[tuple[str, ...]] = ()
    """The declared field names, in wire order."""
    _declared: ClassVar[type["Value"]]
    """The class that the declaration made; a frozen default is of a subclass of it."""

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, self._declared):
            return NotImplemented
        return all(_same(getattr(self, name), getattr(other, name)) for name in self._fields)

    def __repr__(self) -> str:
        shown = (f"{name}={_text(getattr(self, name))}" for name in self._fields)
        return f"{self._declared.__name__}({', '.join(shown)})"


def value_class(name: str, defaults: dict[str, Any]) -> type[Value]:
    """A class of values with these fields and their defaults.

    CPython keeps the attributes of a class's objects in one shared table of keys, laid out by the
    first objects made; an object with a key that came too late, or in another order, gets a
    dictionary of its own and is slow for ever. So the first object sets every field, in order.
    """
    cls: type[Value] = type(name, (Value,), {**defaults, "_fields": tuple(defaults)})
    cls._declared = cls
    first = cls()
    for field, default in defaults.items():
        setattr(first, field, default)
    return cls


def frozen_default(cls: type[Value]) -> Value:
    """A value of `cls` with every field at its default, safe to share: it cannot be changed."""
    frozen = type(cls.__name__, (cls,), {"__setattr__": _refuse, "__delattr__": _refuse})
    value: Value = frozen()
    return value


def _refuse(self: Value, name: str, *_: object) -> NoReturn:
    raise AttributeError(
        f"{type(self).__name__}.{name}: this is the shared default, assign a new value instead"
    )


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return list(one) == list(other)  # an absent array is (), a parsed one a list
    return bool(one == other)


def _text(value: Any) -> str:
    if isinstance(value, memoryview):
        return f"<{len(value)} bytes>"
    return repr(value)
