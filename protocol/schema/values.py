"""Messages in memory: objects of slotted classes, which their declarations make.

A class has a slot for every declared field and nothing else: assigning to a field that was not
declared raises AttributeError, and naming one in the constructor raises TypeError. A new value has
all its fields, at their defaults. All values share the defaults, so these are immutable: absent
arrays are `()`, an absent nested group is a frozen value that raises AttributeError when written
to.

The stub beside a declaration (`protocol/messages/*.pyi`) tells the type checker what its class has,
in terms of `protocol.schema.fields`.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NoReturn, dataclass_transform


@dataclass_transform(kw_only_default=True)
class Value:
    """A message, or a group of fields within one. Values are equal if every declared field is.

    `dataclass_transform` is for the type checker, which makes the constructor of a stub's fields.
    """

    __slots__ = ()
    __hash__: ClassVar[None]  # type: ignore[assignment]  # mutable, as every class with __eq__
    _defaults: ClassVar[Mapping[str, Any]] = {}
    """The declared fields, in wire order, and the default of each."""
    _declared: ClassVar[type["Value"]]
    """The class that the declaration made; the class of a frozen default is a subclass of it."""

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, self._declared):
            return NotImplemented
        return all(_same(getattr(self, name), getattr(other, name)) for name in self._defaults)

    def __repr__(self) -> str:
        shown = (f"{name}={_text(getattr(self, name))}" for name in self._defaults)
        return f"{self._declared.__name__}({', '.join(shown)})"


class Encoded(bytes):
    """An element of an array as its bytes, which were built before (`Api.element_codec`).

    For arrays that are declared with `may_be_encoded`; the bytes are of the version that is built.
    """

    __slots__ = ()


def value_namespace(defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The namespace for a class of values with these fields."""
    return {"__slots__": tuple(defaults), "__init__": _first_init, "_defaults": defaults}


def frozen_default(cls: Any) -> Value:
    """A value of `cls` with every field at its default, safe to share: it cannot be changed."""
    namespace = {
        "__slots__": (),
        "__setattr__": _refuse,
        "__delattr__": _refuse,
        "__deepcopy__": _itself,
    }
    frozen = type.__new__(type(cls), cls.__name__, (cls,), namespace)
    value: Value = object.__new__(frozen)
    for name, default in cls._defaults.items():
        object.__setattr__(value, name, default)
    return value


def _first_init(self: Value, **fields: Any) -> None:
    """Give the class its generated `__init__`, and call that.

    It is compiled for the first value, not with the class, because a start declares hundreds of
    classes and makes values of few.
    """
    cls = self._declared
    cls.__init__ = _initializer(cls)  # type: ignore[method-assign]
    cls.__init__(self, **fields)


def _initializer(cls: type[Value]) -> Callable[..., None]:
    """`__init__(self, first=default, …)`: straight-line code, a third of the cost of a loop.

    Its parameters are not keyword-only, which would make a call without arguments slower by half;
    the type checker refuses positional arguments.
    """
    names = list(cls._defaults)
    parameters = "".join(f", {name}=defaults[{name!r}]" for name in names)
    lines = "".join(f"    self.{name} = {name}\n" for name in names) or "    pass\n"
    namespace: dict[str, Any] = {"defaults": cls._defaults}
    text = f"def __init__(self{parameters}):\n{lines}"
    exec(compile(text, f"<make {cls.__name__}>", "exec"), namespace)
    function: Callable[..., None] = namespace["__init__"]
    function.__qualname__ = f"{cls.__name__}.__init__"
    return function


def _refuse(self: Value, name: str, *_: object) -> NoReturn:
    raise AttributeError(
        f"{type(self).__name__}.{name}: this is the shared default, assign a new value instead"
    )


def _itself(self: Value, memo: object) -> Value:
    return self


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return list(one) == list(other)  # an absent array is (), a parsed one a list
    return bool(one == other)


def _text(value: Any) -> str:
    if isinstance(value, memoryview):
        return f"<{len(value)} bytes>"
    return repr(value)
