"""A version's codec: its generated functions, each made when it is first used.

A broker parses requests and builds responses, so each direction is generated on its own. That takes
about half a millisecond, once per (message, version) that a client uses. Compiling what is
generated gains too little to write it to files (decision 82).
"""

from collections.abc import Callable, Generator, Iterator
from functools import cached_property
from mmap import mmap
from typing import Any, Generic, TypeVar

from protocol.errors import ProtocolError
from protocol.schema.build_code import build_function, build_steps_function
from protocol.schema.constructs import Wire
from protocol.schema.parse_code import (
    parse_function,
    parse_small_function,
    parse_steps_function,
)

Buffer = bytes | bytearray | mmap
ParseAt = Callable[[Buffer, memoryview, int, int], tuple[Any, int]]
ParseSteps = Callable[..., Iterator[tuple[Any, int, int] | None]]
BuildInto = Callable[[Any, Callable[[Any], object]], None]
BuildSteps = Callable[[Any, Callable[[Any], object]], Generator[None, None, None]]


T = TypeVar("T")


class Codec(Generic[T]):
    """Bytes to values and back for one version of one message.

    `parse_at` and `build_into` are for the hot path, `parse` and `build` for everyone else.
    """

    def __init__(self, node: Wire, label: str) -> None:
        self.node = node
        self.label = label

    @cached_property
    def parse_at(self) -> ParseAt:
        """`parse_at(buf, mv, offset, end) -> (value, next offset)`; `mv` is a memoryview of `buf`.

        Bytes and records fields are slices of `mv`: they are valid until the buffer is reused.
        Raises ProtocolError, and nothing else, if the bytes before `end` are not such a message.
        It does not check for bytes left between the next offset and `end`; the caller may.
        """
        generated: ParseAt = parse_function(self.node, self.label)
        return generated

    @cached_property
    def parse_small_at(self) -> ParseAt:
        """`parse_at` in a millisecond or two. Raises ManyElements if it would take longer."""
        generated: ParseAt = parse_small_function(self.node, self.label)
        return generated

    @cached_property
    def parse_steps(self) -> ParseSteps:
        """`parse_steps(buf, mv, offset, end, most)`: `parse_at` for many elements, step by step.

        Yields None between two steps, and finally (value, next offset, number of elements). Raises
        ProtocolError, also for more than `most` elements.
        """
        generated: ParseSteps = parse_steps_function(self.node, self.label)
        return generated

    @cached_property
    def build_into(self) -> BuildInto:
        """`build_into(value, append)` hands the pieces of the message to `append`, in order.

        The content of a records field is a piece of its own and need not be bytes-like.
        """
        generated: BuildInto = build_function(self.node, self.label)
        return generated

    @cached_property
    def build_steps(self) -> BuildSteps:
        """`build_into` as a generator: yields between two elements of an array."""
        generated: BuildSteps = build_steps_function(self.node, self.label)
        return generated

    def parse(self, data: Buffer | memoryview) -> T:
        """The value that `data` encodes. Raises ProtocolError, also for bytes left over."""
        buf = data.tobytes() if isinstance(data, memoryview) else data
        value: T
        value, offset = self.parse_at(buf, memoryview(buf), 0, len(buf))
        if offset != len(buf):
            raise ProtocolError(f"{self.label}: {len(buf) - offset} bytes left over")
        return value

    def build(self, value: T) -> bytes:
        """The message as one bytes object. Records must be bytes-like."""
        pieces: list[Any] = []
        self.build_into(value, pieces.append)
        return b"".join(pieces)

    def __repr__(self) -> str:
        return f"Codec({self.label})"
