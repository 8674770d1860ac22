"""Message declarations and what is made of them: the only room that imports construct.

* `declaration`: the language of `protocol/messages`; an `Api` for all versions.
* `constructs`: the tree of one version, a plain construct that can be interpreted: the oracle.
* `parse_code`, `build_code` (on `source`, `wire`): straight-line Python generated from that tree.
* `codec`: what production code uses. `values`: the objects that are parsed and built.

Construct's interpreter costs 20 to 40 times as much as the generated code, which is why it serves
tests only; its idiom is what makes the declarations readable.
"""

from typing import Any

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

Message = Any
"""A parsed or built message: fields are attributes, their types stand in the declaration."""

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
]
