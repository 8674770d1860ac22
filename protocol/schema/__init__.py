"""Message declarations and what is made of them: the only room that imports construct.

* `declaration`: the language of `protocol/messages`; an `Api` for all versions.
* `constructs`: the tree of one version, a plain construct that can be interpreted: the oracle.
* `parse_code`, `build_code` (on `source`, `wire`): straight-line Python generated from that tree.
* `codec`: what production code uses. `values`: the objects that are parsed and built.
* `fields`: what a type checker reads in the stubs beside `protocol/messages`; never imported.

Construct's interpreter costs 20 to 40 times as much as the generated code, which is why it serves
tests only; its idiom is what makes the declarations readable.
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
from protocol.schema.values import Value

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
