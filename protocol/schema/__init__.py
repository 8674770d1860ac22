"""Message declarations and the codecs made of them: the only room that imports construct.

* `declaration`: the language of `protocol/messages`; an `Api` declares all versions of a message.
* `constructs`: the tree of one version, a plain construct that tests interpret as an oracle.
* `parse_code`, `build_code` (on `source`, `wire`): straight-line Python generated from that tree.
* `codec`: what production code calls. `values`: the objects that are parsed and built.
* `fields`: types for the stubs beside `protocol/messages`; only type checkers read it.

Construct's interpreter costs 20 to 40 times as much as the generated code, so only tests use it;
its idiom makes the declarations readable.
"""

from typing import TYPE_CHECKING

from protocol.schema.codec import Codec
from protocol.schema.declaration import (
    Api,
    Array,
    Bool,
    Bytes,
    Float64,
    Group,
    Int8,
    Int16,
    Int32,
    Int64,
    Records,
    Str,
    UInt16,
    UInt32,
    Uuid,
    V,
)
from protocol.schema.values import Encoded, Value

if TYPE_CHECKING:

    class Message(Value, metaclass=Api):
        """A parsed or built message of any kind: its class is the `Api` that declares it."""
else:
    Message = Value

__all__ = [
    "Api",
    "Array",
    "Bool",
    "Bytes",
    "Codec",
    "Encoded",
    "Float64",
    "Group",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Message",
    "Records",
    "Str",
    "UInt16",
    "UInt32",
    "Uuid",
    "V",
    "Value",
]
