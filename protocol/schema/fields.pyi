# What fields of messages are to a type checker, where reading and writing differ. For the stubs in
# protocol/messages only: there is no such module at run time, where every field is a slot.

from collections.abc import Sequence, Sized
from typing import Generic, TypeVar

from protocol.schema.lazy import Elements
from protocol.schema.values import Encoded

T = TypeVar("T")

Blob = bytes | bytearray | memoryview

# Of strings, ids or groups. The default is an empty tuple, so nothing is appended to what was read.
class ArrayField(Generic[T]):
    def __get__(self, message: object, owner: object) -> Sequence[T]: ...
    def __set__(self, message: object, content: Elements[T]) -> None: ...

# As above, of groups; what is written may be encoded already.
class EncodedArrayField(Generic[T]):
    def __get__(self, message: object, owner: object) -> Sequence[T]: ...
    def __set__(self, message: object, content: Elements[T | Encoded]) -> None: ...

class NullableArrayField(Generic[T]):
    def __get__(self, message: object, owner: object) -> Sequence[T] | None: ...
    def __set__(self, message: object, content: Elements[T] | None) -> None: ...

# Of a request: parsed as a slice of the frame, built from anything with a length.
class RecordsField:
    def __get__(self, message: object, owner: object) -> memoryview | None: ...
    def __set__(self, message: object, content: Sized | None) -> None: ...
