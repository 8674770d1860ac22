"""The construct of one message at one version, as a tree.

`Api.at(version)` makes the tree and settles everything that depends on the version: which fields
exist, and whether they are compact, nullable, tagged. That leaves the kinds of node below. They are
ordinary constructs that can be interpreted (`parse_stream`, `build_stream`): slow, but obvious, and
so the oracle for tests of the generated code. The generator (`parse_code`, `build_code`) walks the
same tree.

On bad bytes the interpreter raises construct's own errors; only generated code promises
`ProtocolError`.
"""

import io
import struct
from collections.abc import Iterator
from typing import Any

from construct import Construct, FormatField, StreamError
from construct.core import stream_read

from protocol.schema.values import Encoded, Value
from protocol.schema.wire import MAX_STRING, MAX_VARINT, uvarint


class Wire(Construct):  # type: ignore[misc]  # construct ships no types
    """A node of a version's tree."""

    code: str | None = None
    """The `struct` code of a fixed-size node, None for all others."""
    min_size = 1
    """Fewest bytes that a value takes; it bounds how many elements an array can claim to have."""

    def parse_tail(self, stream: Any, path: str) -> Any:
        """Parse a value that must fill the stream, as that of a tagged field does."""
        value = self._parse(stream, None, path)
        if stream.read(1):
            raise StreamError("bytes left over", path=path)
        return value


class Fixed(Wire):
    """A fixed-size field, parsed by one of construct's own: integers, float64, bool."""

    def __init__(self, field: FormatField) -> None:
        super().__init__()
        self.field = field
        self.code = field.fmtstr[1:]
        self.min_size = field.length

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        return self.field._parse(stream, context, path)

    def _build(self, value: Any, stream: Any, context: Any, path: str) -> Any:
        return self.field._build(value, stream, context, path)


class UuidBytes(Wire):
    """A UUID, as 16 raw bytes."""

    code = "16s"
    min_size = 16

    def _parse(self, stream: Any, context: Any, path: str) -> bytes:
        return bytes(stream_read(stream, 16, path))

    def _build(self, value: bytes, stream: Any, context: Any, path: str) -> bytes:
        stream.write(struct.pack("16s", value))
        return value


class Prefixed(Wire):
    """A field with a length prefix, perhaps null.

    Compact: varint of length + 1, 0 for null. Otherwise: a big-endian signed integer (`prefix` is
    its struct code), negative for null.
    """

    prefix = "i"
    limit = MAX_VARINT

    def __init__(self, *, compact: bool, nullable: bool) -> None:
        super().__init__()
        self.compact = compact
        self.nullable = nullable
        self.min_size = 1 if compact else struct.calcsize(">" + self.prefix)

    @property
    def null(self) -> bytes:
        """The prefix of a null value."""
        return b"\0" if self.compact else struct.pack(">" + self.prefix, -1)

    def read_length(self, stream: Any, path: str) -> int | None:
        """The length, or None for null."""
        if self.compact:
            length = read_varint(stream, path) - 1
        else:
            raw = stream_read(stream, struct.calcsize(">" + self.prefix), path)
            (length,) = struct.unpack(">" + self.prefix, raw)
        if length < 0 and not self.nullable:
            raise StreamError("null is not allowed here", path=path)
        if length > self.limit:
            raise StreamError("too long", path=path)
        return length if length >= 0 else None

    def write_length(self, length: int | None, stream: Any) -> None:
        """The prefix for a length, or for null when it is None."""
        if length is None and not self.nullable:
            raise TypeError("null is not allowed here")
        if length is None:
            stream.write(self.null)
        elif self.compact:
            stream.write(uvarint(length + 1))
        else:
            stream.write(struct.pack(">" + self.prefix, length))


class Text(Prefixed):
    """A string in UTF-8."""

    prefix = "h"
    limit = MAX_STRING

    def _parse(self, stream: Any, context: Any, path: str) -> str | None:
        length = self.read_length(stream, path)
        return None if length is None else stream_read(stream, length, path).decode()

    def _build(self, value: str | None, stream: Any, context: Any, path: str) -> str | None:
        encoded = None if value is None else value.encode()
        self.write_length(None if encoded is None else len(encoded), stream)
        stream.write(encoded or b"")
        return value


class Blob(Prefixed):
    """Bytes or records; generated code builds it from anything that has a length."""

    def _parse(self, stream: Any, context: Any, path: str) -> bytes | None:
        length = self.read_length(stream, path)
        return None if length is None else stream_read(stream, length, path)

    def _build(self, value: Any, stream: Any, context: Any, path: str) -> Any:
        self.write_length(None if value is None else len(value), stream)
        stream.write(value or b"")
        return value


class ArrayOf(Prefixed):
    """A counted sequence of one kind of element."""

    def __init__(
        self, element: Wire, *, compact: bool, nullable: bool, may_be_encoded: bool
    ) -> None:
        super().__init__(compact=compact, nullable=nullable)
        self.element = element
        self.may_be_encoded = may_be_encoded

    def _parse(self, stream: Any, context: Any, path: str) -> list[Any] | None:
        count = self.read_length(stream, path)
        if count is None:
            return None
        return [self.element._parse(stream, context, path) for _ in range(count)]

    def _build(self, value: Any, stream: Any, context: Any, path: str) -> Any:
        self.write_length(None if value is None else len(value), stream)
        for element in value or ():
            if self.may_be_encoded and isinstance(element, Encoded):
                stream.write(element)
            else:
                self.element._build(element, stream, context, path)
        return value


class Tagged:
    """A tagged field: written only when its value is not the default (KIP-482)."""

    def __init__(self, tag: int, name: str, node: Wire, default: Any) -> None:
        self.tag = tag
        self.name = name
        self.node = node
        self.default = default

    def is_default(self, value: Any) -> bool:
        """Whether the field is left out. Null and empty differ, list and tuple do not."""
        if isinstance(self.default, tuple):
            return value is not None and tuple(value) == self.default
        return value is self.default or bool(value == self.default)


class Fields(Wire):
    """A group of fields, with a tail of tagged ones in flexible versions."""

    def __init__(
        self,
        cls: type[Value],
        fields: list[tuple[str, Wire]],
        tagged: list[Tagged],
        *,
        flexible: bool,
        nullable: bool,
    ) -> None:
        super().__init__()
        self.cls = cls
        self.fields = fields
        self.tagged = sorted(tagged, key=lambda field: field.tag)
        self.flexible = flexible
        self.nullable = nullable
        size = sum(node.min_size for _, node in fields) + flexible
        self.min_size = 1 if nullable else max(1, size)

    def unread(self) -> Iterator[tuple[str, Any]]:
        """(name, default) of each field that parsing may leave unset.

        These are the fields that this version lacks, and the tagged ones.
        """
        read = {name for name, _ in self.fields}
        return ((n, default) for n, default in self.cls._defaults.items() if n not in read)

    def _parse(self, stream: Any, context: Any, path: str) -> Value | None:
        if self.nullable and stream_read(stream, 1, path)[0] > 127:
            return None
        value = self.cls()
        for name, node in self.fields:
            setattr(value, name, node._parse(stream, context, f"{path} -> {name}"))
        if self.flexible:
            self._parse_tagged(value, stream, path)
        return value

    def _parse_tagged(self, value: Value, stream: Any, path: str) -> None:
        known = {field.tag: field for field in self.tagged}
        for _ in range(read_varint(stream, path)):
            tag = read_varint(stream, path)
            data = io.BytesIO(stream_read(stream, read_varint(stream, path), path))
            if tag in known:
                field = known[tag]
                setattr(value, field.name, field.node.parse_tail(data, f"{path} -> {field.name}"))

    def _build(self, value: Any, stream: Any, context: Any, path: str) -> Any:
        if self.nullable:
            stream.write(b"\xff" if value is None else b"\x01")
            if value is None:
                return value
        for name, node in self.fields:
            node._build(getattr(value, name), stream, context, f"{path} -> {name}")
        if self.flexible:
            self._build_tagged(value, stream, path)
        return value

    def _build_tagged(self, value: Any, stream: Any, path: str) -> None:
        written = []
        for field in self.tagged:
            content = getattr(value, field.name)
            if not field.is_default(content):
                data = io.BytesIO()
                field.node._build(content, data, None, f"{path} -> {field.name}")
                written.append((field.tag, data.getvalue()))
        stream.write(uvarint(len(written)))
        for tag, raw in written:
            stream.write(uvarint(tag) + uvarint(len(raw)) + raw)


def read_varint(stream: Any, path: str) -> int:
    """Read an unsigned varint of up to 31 bits in up to five bytes."""
    value: int = 0
    for shift in (0, 7, 14, 21, 28):
        byte: int = stream_read(stream, 1, path)[0]
        value |= (byte & 0x7F) << shift
        if byte < 128:
            if value > MAX_VARINT:
                break
            return value
    raise StreamError("varint of more than 31 bits", path=path)
