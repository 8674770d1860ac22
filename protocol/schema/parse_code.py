"""Code that parses one version of a message: straight-line Python over a buffer and an offset.

The generated function is `parse_at(buf, mv, o, end) -> (value, offset behind it)`: `buf` is the
frame's buffer (bytes or bytearray, indexing gives integers), `mv` a memoryview of it (slicing costs
no copy), and the message lies in `o .. end`; the buffer may go on behind `end`.

The same tree makes two more functions. `parse_small_at` never takes longer than milliseconds: it
raises `ManyElements` if a message has more than `SMALL_ELEMENTS` elements. `parse_steps` is for
such messages: a generator that yields None after every element (or few thousand numbers), so that
other tasks can run, and finally `(value, offset behind it, number of elements)`.

How it stays fast: a run of fixed-size fields, and the length of what stands behind it, are one
`unpack_from`; a one-byte varint is read inline; an array of integers is one unpack; strings are
decoded from a slice; bytes and records stay slices; elements are counted down, because a `range`
costs more than the one element that most arrays have.

How it stays safe:
* offsets only grow, so one comparison with `end` after the last field catches every fixed-size
  field that ran over; code that allocates (slices, arrays) compares with `end` first;
* an array claims at most as many elements as the bytes left can hold at the element's least size,
  and all arrays of a message together at most `MAX_ELEMENTS`: an element of a few bytes becomes an
  object of two hundred, so a frame within every limit could still take gigabytes;
* a tagged field must end where its size says, and tagged fields count as elements;
* IndexError and struct.error (the buffer itself ended) and UnicodeDecodeError become ProtocolError.
"""

import struct
from itertools import takewhile
from typing import Any

from protocol.errors import ProtocolError
from protocol.schema.constructs import ArrayOf, Blob, Fields, Prefixed, Text, UuidBytes, Wire
from protocol.schema.source import NUMBERS_PER_STEP, Source
from protocol.schema.wire import MAX_STRING, MAX_TAGGED_FIELDS, read_uvarint, skip_tagged_fields

MAX_ELEMENTS = 500_000
"""Far more than an honest request names (all partitions of a large cluster); 100 MB of objects."""
SMALL_ELEMENTS = 1_000
"""Elements that are parsed in one go: about a millisecond."""
ARGUMENTS = "buf, mv, o, end"
STEPS_ARGUMENTS = f"buf, mv, o, end, most={MAX_ELEMENTS}"


class ManyElements(ProtocolError):
    """A message has more elements than are parsed in one go: use `parse_steps`."""


GLOBALS: dict[str, Any] = {
    "ManyElements": ManyElements,
    "ProtocolError": ProtocolError,
    "read_uvarint": read_uvarint,
    "skip_tagged_fields": skip_tagged_fields,
    "unpack_from": struct.unpack_from,
    "BAD_BYTES": (IndexError, struct.error, UnicodeDecodeError),
}


def parse_function(node: Wire, label: str) -> Any:
    """The generated `parse_at` for one version's tree."""
    return parse_source(node, label).function("parse_at", ARGUMENTS, f"parse {label}", GLOBALS)


def parse_small_function(node: Wire, label: str) -> Any:
    """The generated `parse_small_at` for one version's tree."""
    source = parse_source(node, label, _Small)
    return source.function("parse_small_at", ARGUMENTS, f"parse small {label}", GLOBALS)


def parse_steps_function(node: Wire, label: str) -> Any:
    """The generated `parse_steps`; its last argument bounds the elements (`MAX_ELEMENTS`)."""
    source = parse_source(node, label, _Steps)
    return source.function("parse_steps", STEPS_ARGUMENTS, f"parse steps {label}", GLOBALS)


class _Parsing(Source):
    """The source of `parse_at`; subclasses override what differs in the other two functions."""

    def claim(self, path: str) -> None:
        """Write the statements that count `n` more elements."""
        self.line("items += n")
        with self.block(f"if items > {MAX_ELEMENTS}:"):
            self.line(f"raise ProtocolError('{path}: more elements than a message may have')")

    def step(self) -> None:
        """Write the statement between two elements: none."""

    def numbers(self, target: str, size: int, code: str) -> None:
        """Write the statements that read `n` numbers."""
        self.line(f"{target} = list(unpack_from(f'>{{n}}{code}', buf, o))")
        self.line(f"o += {size} * n")

    def uuids(self, target: str) -> None:
        """Write the statements that read `n` UUIDs."""
        self.line(f"{target} = [bytes(mv[i:i + 16]) for i in range(o, o + 16 * n, 16)]")
        self.line("o += 16 * n")

    def finish(self) -> None:
        """Write the end; the variables `value`, `o` and `items` hold the result."""
        self.line("return value, o")


class _Small(_Parsing):
    def claim(self, path: str) -> None:
        self.line("items += n")
        with self.block(f"if items > {SMALL_ELEMENTS}:"):
            self.line(f"raise ManyElements('{path}: more elements than are parsed in one go')")


class _Steps(_Parsing):
    def claim(self, path: str) -> None:
        self.line("items += n")
        with self.block("if items > most:"):
            self.line(f"raise ProtocolError('{path}: more elements than a message may have')")

    def step(self) -> None:
        self.line("yield")

    def numbers(self, target: str, size: int, code: str) -> None:
        self.line(f"{target} = []")
        with self.block("while n > 0:"):
            self.line(f"k = min(n, {NUMBERS_PER_STEP})")
            self.line(f"{target} += unpack_from(f'>{{k}}{code}', buf, o)")
            self.line(f"o += {size} * k")
            self.line("n -= k")
            self.line("yield")

    def uuids(self, target: str) -> None:
        self.line(f"{target} = []")
        with self.block("while n > 0:"):
            self.line(f"k = min(n, {NUMBERS_PER_STEP})")
            self.line(f"{target} += [bytes(mv[i:i + 16]) for i in range(o, o + 16 * k, 16)]")
            self.line("o += 16 * k")
            self.line("n -= k")
            self.line("yield")

    def finish(self) -> None:
        self.line("yield value, o, items")


def parse_source(node: Wire, label: str, kind: type[_Parsing] = _Parsing) -> _Parsing:
    """The source of the generated function: of `parse_at`, unless `kind` says otherwise."""
    source = kind()
    source.line("items = 0")
    with source.block("try:"):
        _any(source, node, "value", label)
    with source.block("except BAD_BYTES as error:"):
        source.line(f"raise ProtocolError(f'{label}: {{error}}') from error")
    with source.block("if o > end:"):
        source.line(f"raise ProtocolError('{label}: the frame ends too early')")
    source.finish()
    return source


def _any(source: _Parsing, node: Wire, target: str, path: str) -> None:
    """Write the statements that parse `node` at `o` into the variable `target`."""
    if node.code is not None:
        source.line(f"{target}, = {source.unpacker(node.code)}(buf, o)")
        source.line(f"o += {node.min_size}")
    elif isinstance(node, Fields):
        _fields(source, node, target, path)
    elif isinstance(node, Prefixed):
        _prefix(source, node)
        _prefixed(source, node, target, path)
    else:
        raise TypeError(f"no code for {node!r}")


def _byte(source: _Parsing, name: str) -> None:
    source.line(f"{name} = buf[o]")
    source.line("o += 1")


def _rest_of_varint(source: _Parsing, name: str) -> None:
    """Write the statements that read what follows the first byte, which is in the variable."""
    with source.block(f"if {name} > 127:"):
        source.line(f"{name}, o = read_uvarint(buf, o, {name})")


def _varint(source: _Parsing, name: str) -> None:
    _byte(source, name)
    _rest_of_varint(source, name)


def _prefix_code(node: Prefixed) -> str:
    """The `struct` code of the length, or of its first byte."""
    return "B" if node.compact else node.prefix


def _prefix(source: _Parsing, node: Prefixed) -> None:
    """Write the statements that read the length, or its first byte, into `n`."""
    if node.compact:
        _byte(source, "n")
    else:
        source.line(f"n, = {source.unpacker(node.prefix)}(buf, o)")
        source.line(f"o += {struct.calcsize('>' + node.prefix)}")


def _prefixed(source: _Parsing, node: Prefixed, target: str, path: str) -> None:
    """Write the statements that parse what follows the length, or its first byte, in `n`."""
    if node.compact and isinstance(node, Blob):  # most are of 127 to 16,382 bytes
        with source.block("if n > 127:"):
            source.line("e = buf[o]")
            with source.block("if e < 128:"):
                source.line("n += (e << 7) - 128")
                source.line("o += 1")
            with source.block("else:"):
                source.line("n, o = read_uvarint(buf, o, n)")
    elif node.compact:
        _rest_of_varint(source, "n")
    with source.block("if n == 0:" if node.compact else "if n < 0:"):
        if node.nullable:
            source.line(f"{target} = None")
        else:
            source.line(f"raise ProtocolError('{path}: null where none is allowed')")
    with source.block("else:"):
        if isinstance(node, ArrayOf):
            if node.compact:
                source.line("n -= 1")
            _elements(source, node.element, target, path)
        else:
            source.line("e = o + n - 1" if node.compact else "e = o + n")
            _slice(source, node, target, path)


def _slice(source: _Parsing, node: Prefixed, target: str, path: str) -> None:
    """Write the statements that parse a string or bytes between `o` and `e`."""
    with source.block("if e > end:"):
        source.line(f"raise ProtocolError('{path}: longer than the frame')")
    if isinstance(node, Text):
        if node.compact:
            with source.block(f"if n > {MAX_STRING + 1}:"):
                source.line(f"raise ProtocolError('{path}: longer than a string may be')")
        source.line(f"{target} = buf[o:e].decode()")
    elif isinstance(node, Blob):
        source.line(f"{target} = mv[o:e]")
    source.line("o = e")


def _elements(source: _Parsing, element: Wire, target: str, path: str) -> None:
    """Write the statements that parse an array of `n` elements."""
    size = element.min_size
    with source.block(f"if n{f' * {size}' if size > 1 else ''} > end - o:"):
        source.line(f"raise ProtocolError('{path}: more elements than the frame holds')")
    source.claim(path)
    if isinstance(element, UuidBytes):
        source.uuids(target)
    elif element.code is not None:
        source.numbers(target, size, element.code)
    else:
        item, left = source.name(), source.name()
        source.line(f"{target} = []")
        source.line(f"{left} = n")
        with source.block(f"while {left}:"):
            source.line(f"{left} -= 1")
            _any(source, element, item, path)
            source.line(f"{target}.append({item})")
            source.step()


def _fields(source: _Parsing, node: Fields, target: str, path: str) -> None:
    if node.nullable:
        _byte(source, "n")
        with source.block("if n > 127:"):
            source.line(f"{target} = None")
        with source.block("else:"):
            _present_fields(source, node, target, path)
    else:
        _present_fields(source, node, target, path)


def _present_fields(source: _Parsing, node: Fields, target: str, path: str) -> None:
    source.line(f"{target} = {source.constant(object.__new__)}({source.constant(node.cls)})")
    fields = list(node.fields)
    tail_has_begun = False
    while fields:
        run = list(takewhile(lambda field: field[1].code is not None, fields))
        del fields[: len(run)]
        name, member = fields.pop(0) if fields else ("", None)
        if run:
            code = "".join(fixed.code or "" for _, fixed in run)
            targets = [f"{target}.{fixed}" for fixed, _ in run]
            if isinstance(member, Prefixed):
                code, targets = code + _prefix_code(member), [*targets, "n"]
            elif member is None and node.flexible:
                code, targets, tail_has_begun = code + "B", [*targets, "n"], True
            source.line(f"{', '.join(targets)}, = {source.unpacker(code)}(buf, o)")
            source.line(f"o += {struct.calcsize('>' + code)}")
        if member is not None:
            content = source.name()
            if run and isinstance(member, Prefixed):
                _prefixed(source, member, content, f"{path} {name}")
            else:
                _any(source, member, content, f"{path} {name}")
            source.line(f"{target}.{name} = {content}")
    for name, default in node.unread():
        source.line(f"{target}.{name} = {source.constant(default)}")
    if node.flexible:
        if not tail_has_begun:
            _byte(source, "n")
        _tagged_fields(source, node, target, path)


def _tagged_fields(source: _Parsing, node: Fields, target: str, path: str) -> None:
    """Write the statements that parse the tagged fields; the first byte of their number is `n`."""
    with source.block("if n:"):
        _rest_of_varint(source, "n")
        with source.block(f"if n > {MAX_TAGGED_FIELDS}:"):
            source.line(f"raise ProtocolError('{path}: more tagged fields than a group may have')")
        source.claim(path)
        if not node.tagged:
            source.line("o = skip_tagged_fields(buf, o, n, end)")
            return
        tag, stop = source.name(), source.name()
        with source.block("if n * 2 > end - o:"):
            source.line(f"raise ProtocolError('{path}: more tagged fields than the frame holds')")
        with source.block("for _ in range(n):"):
            _varint(source, tag)
            _varint(source, "n")
            source.line(f"{stop} = o + n")
            with source.block(f"if {stop} > end:"):
                source.line(f"raise ProtocolError('{path}: tagged field longer than the frame')")
            for position, field in enumerate(node.tagged):
                with source.block(f"{'elif' if position else 'if'} {tag} == {field.tag}:"):
                    content = source.name()
                    _any(source, field.node, content, f"{path} {field.name}")
                    source.line(f"{target}.{field.name} = {content}")
            with source.block("else:"):
                source.line(f"o = {stop}")
            with source.block(f"if o != {stop}:"):
                source.line(f"raise ProtocolError('{path}: tagged field of another size')")
