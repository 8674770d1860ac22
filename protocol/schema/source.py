"""Writes Python source: lines with indentation, fresh names, and constants bound as arguments.

A constant that generated code uses (a struct's `pack`, a value class, a default) becomes a default
argument of the generated function, and so a local variable, whose lookup is the cheapest.
"""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

NUMBERS_PER_STEP = 4_096
"""Elements of an array of numbers that are packed or unpacked, in C, between two yields."""


class Source:
    """The body of one function that is being written."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 1
        self._names = 0
        self._constants: dict[str, Any] = {}
        self._known: dict[tuple[str, object], str] = {}

    def line(self, text: str) -> None:
        """Append one line at the present depth."""
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A compound statement: `head`, and as its body the lines written inside the `with`."""
        self.line(head)
        start = len(self._lines)
        self._depth += 1
        yield
        if len(self._lines) == start:
            self.line("pass")
        self._depth -= 1

    def name(self) -> str:
        """A local variable that is not in use yet."""
        self._names += 1
        return f"v{self._names}"

    def unpacker(self, code: str) -> str:
        """A name for `struct.Struct(">" + code).unpack_from`."""
        return self._bind("unpack", code, lambda: struct.Struct(">" + code).unpack_from)

    def packer(self, code: str) -> str:
        """A name for `struct.Struct(">" + code).pack`."""
        return self._bind("pack", code, lambda: struct.Struct(">" + code).pack)

    def constant(self, value: Any) -> str:
        """An expression for `value`: a literal if it has one, else a bound name."""
        if value is None or isinstance(value, bool | int | float | str | bytes):
            return repr(value)
        return self._bind("constant", id(value), lambda: value)

    def _bind(self, kind: str, key: object, make: Callable[[], Any]) -> str:
        name = self._known.get((kind, key))
        if name is None:
            name = self._known[kind, key] = f"{kind}_{len(self._constants)}"
            self._constants[name] = make()
        return name

    def text(self, name: str, arguments: str) -> str:
        """The function's source."""
        bound = "".join(f", {constant}={constant}" for constant in self._constants)
        return f"def {name}({arguments}{bound}):\n" + "\n".join(self._lines) + "\n"

    def function(self, name: str, arguments: str, label: str, names: dict[str, Any]) -> Any:
        """Compile the function; `names` are its globals, `label` names it in tracebacks."""
        namespace = {**names, **self._constants}
        exec(compile(self.text(name, arguments), f"<{label}>", "exec"), namespace)
        return namespace[name]
