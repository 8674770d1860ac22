"""Code that builds one version of a message: a list of byte pieces, appended one by one.

The generated function is `build_into(value, w)`; `w` takes a piece and is usually `list.append`.
Pieces are bytes-like, except for the content of a records field, which is passed on as it is: a
slice of a file stays one, so that the network can send it without reading it.

`build_steps(value, w)` does the same as a generator that yields between two elements of an array,
so that other tasks can run. An array may be anything that has a length and can be iterated; it may
make its elements while they are built (`protocol.schema.lazy`). An element may be `Encoded`, a
piece that was built before, if the declaration says so.

A run of fixed-size fields, and an empty tagged tail behind it, is one `pack`; a tagged field that
holds its default costs one comparison.

A value that does not fit its declaration is a bug of the caller: it raises struct.error, TypeError,
AttributeError or ValueError, and never makes a malformed message.
"""

import struct
from itertools import groupby
from typing import Any

from protocol.schema.constructs import ArrayOf, Fields, Prefixed, Tagged, Text, UuidBytes, Wire
from protocol.schema.source import NUMBERS_PER_STEP, Source
from protocol.schema.values import Encoded
from protocol.schema.wire import SHORT_VARINTS, long_string_prefix, uvarint

ARGUMENTS = "message, w"
GLOBALS: dict[str, Any] = {
    "Encoded": Encoded,
    "SHORT": SHORT_VARINTS,
    "uvarint": uvarint,
    "long_string_prefix": long_string_prefix,
    "pack": struct.pack,
}


def build_function(node: Wire, label: str) -> Any:
    """The generated `build_into` for one version's tree."""
    return build_source(node).function("build_into", ARGUMENTS, f"build {label}", GLOBALS)


def build_steps_function(node: Wire, label: str) -> Any:
    """The generated `build_steps` for one version's tree."""
    source = build_source(node, _Steps)
    return source.function("build_steps", ARGUMENTS, f"build steps {label}", GLOBALS)


class _Building(Source):
    """The source of `build_into`; `_Steps` overrides what differs in `build_steps`."""

    def step(self) -> None:
        """Write the statement between two elements: none."""

    def numbers(self, value: str, code: str) -> None:
        """Write the statements that pack the `n` numbers of an array."""
        with self.block("if n:"):
            self.line(f"w(pack(f'>{{n}}{code}', *{value}))")


class _Steps(_Building):
    def step(self) -> None:
        self.line("yield")

    def numbers(self, value: str, code: str) -> None:
        at, part = self.name(), self.name()
        with self.block(f"for {at} in range(0, n, {NUMBERS_PER_STEP}):"):
            self.line(f"{part} = {value}[{at}:{at} + {NUMBERS_PER_STEP}]")
            self.line(f"w(pack(f'>{{len({part})}}{code}', *{part}))")
            self.line("yield")


def build_source(node: Wire, kind: type[_Building] = _Building) -> _Building:
    """The source of the generated function: of `build_into`, unless `kind` says otherwise."""
    source = kind()
    _any(source, node, "message")
    source.line("return")
    source.step()  # never reached; a `yield` makes the function a generator even without an array
    return source


def _any(source: _Building, node: Wire, value: str) -> None:
    """Write the statements that build the variable `value` as `node`."""
    if node.code is not None:
        source.line(f"w({source.packer(node.code)}({value}))")
    elif isinstance(node, Fields):
        if node.nullable:
            with source.block(f"if {value} is None:"):
                source.line(r"w(b'\xff')")
            with source.block("else:"):
                source.line(r"w(b'\x01')")
                _present_fields(source, node, value)
        else:
            _present_fields(source, node, value)
    elif isinstance(node, Prefixed):
        if node.nullable:
            with source.block(f"if {value} is None:"):
                source.line(f"w({node.null!r})")
            with source.block("else:"):
                _prefixed(source, node, value)
        else:
            _prefixed(source, node, value)
    else:
        raise TypeError(f"no code for {node!r}")


def _length(source: _Building, node: Prefixed) -> None:
    """Write the statement that builds the length prefix from the variable `n`."""
    if not node.compact:
        source.line(f"w({source.packer(node.prefix)}(n))")
    elif isinstance(node, Text):
        source.line("w(SHORT[n + 1] if n < 127 else long_string_prefix(n))")
    else:
        source.line("w(SHORT[n + 1] if n < 127 else uvarint(n + 1))")


def _prefixed(source: _Building, node: Prefixed, value: str) -> None:
    if isinstance(node, Text):
        source.line(f"b = {value}.encode()")
        source.line("n = len(b)")
        _length(source, node)
        source.line("w(b)")
        return
    source.line(f"n = len({value})")
    _length(source, node)
    if isinstance(node, ArrayOf):
        _elements(source, node, value)
    else:
        source.line(f"w({value})")


def _elements(source: _Building, node: ArrayOf, value: str) -> None:
    element = node.element
    if element.code is not None and not isinstance(element, UuidBytes):
        source.numbers(value, element.code)
        return
    item = source.name()
    with source.block(f"for {item} in {value}:"):
        if node.may_be_encoded:
            with source.block(f"if {item}.__class__ is Encoded:"):
                source.line(f"w({item})")
            with source.block("else:"):
                _any(source, element, item)
        else:
            _any(source, element, item)
        source.step()


def _present_fields(source: _Building, node: Fields, value: str) -> None:
    empty_tail = node.flexible and not node.tagged
    for is_fixed, members in groupby(node.fields, key=lambda field: field[1].code is not None):
        run = list(members)
        if is_fixed:
            code = "".join(member.code or "" for _, member in run)
            contents = ", ".join(f"{value}.{name}" for name, _ in run)
            if empty_tail and run[-1] is node.fields[-1]:
                code, contents, empty_tail = code + "B", contents + ", 0", False
            source.line(f"w({source.packer(code)}({contents}))")
        else:
            for name, member in run:
                content = source.name()
                source.line(f"{content} = {value}.{name}")
                _any(source, member, content)
    if empty_tail:
        source.line(r"w(b'\0')")
    elif node.flexible and node.tagged:
        _tagged_fields(source, node, value)


def _default_test(source: _Building, field: Tagged, content: str) -> str:
    """Return an expression that is true if the variable `content` holds the field's default."""
    default = source.constant(field.default)
    if field.default is None:
        return f"{content} is None"
    if isinstance(field.default, tuple):
        if field.default:
            raise TypeError(f"{field.name}: a default with elements is not supported")
        return f"({content} is not None and not len({content}))"
    if isinstance(field.default, bool | int | float | str | bytes):
        return f"{content} == {default}"
    return f"({content} is {default} or {content} == {default})"


def _tagged_fields(source: _Building, node: Fields, value: str) -> None:
    """Write the statements that build the tagged fields that differ from their defaults.

    Their number stands before them, in ascending order of tags.
    """
    written = []
    for field in node.tagged:
        content, present = source.name(), source.name()
        source.line(f"{content} = {value}.{field.name}")
        source.line(f"{present} = not {_default_test(source, field, content)}")
        written.append((field, content, present))
    names = [present for _, _, present in written]
    with source.block(f"if {' or '.join(names)}:"):
        source.line(f"w(SHORT[{' + '.join(names)}])")
        for field, content, present in written:
            with source.block(f"if {present}:"):
                _tagged_field(source, field, content)
    with source.block("else:"):
        source.line(r"w(b'\0')")


def _tagged_field(source: _Building, field: Tagged, content: str) -> None:
    """Write the statements that build the variable `content` behind its tag and its size."""
    node = field.node
    if node.code is not None:
        source.line(f"w({uvarint(field.tag) + uvarint(node.min_size)!r})")
        _any(source, node, content)
        return
    outer, pieces, raw = (source.name() for _ in range(3))
    source.line(f"{outer} = w")
    source.line(f"{pieces} = []")
    source.line(f"w = {pieces}.append")
    _any(source, node, content)
    source.line(f"w = {outer}")
    source.line(f"{raw} = b''.join({pieces})")
    source.line(f"w({uvarint(field.tag)!r} + uvarint(len({raw})))")
    source.line(f"w({raw})")
