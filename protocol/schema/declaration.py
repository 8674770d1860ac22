"""How messages are declared: once for all versions, in construct's `"name" / subcon` idiom.

    PartitionData = Group(
        "PartitionData",
        "index"   / V("0+", Int32),
        "records" / V("0+", Records, nullable="0+"),
    )

A declaration holds for all versions. It is written like a construct, but cannot parse: `at` turns
it into the tree of one version (`protocol.schema.constructs`).

The declaration of a group or a message is the class of its values: `PartitionData(index=3)` is a
value.

Defaults. A field that a version lacks, or that was never set, has its default: 0, False, "", b"",
16 zero bytes, a group of defaults; None if it may be null in all its versions. An absent array is
(), unless its declaration says `default=None`. On the wire a default matters for tagged fields
only: they are left out if equal to it.
"""

from collections.abc import Sequence
from typing import Any, TypeVar, overload

from construct import (
    Construct,
    Float64b,
    FormatField,
    Int8sb,
    Int16sb,
    Int16ub,
    Int32sb,
    Int32ub,
    Int64sb,
)

from protocol.schema.codec import Codec
from protocol.schema.constructs import ArrayOf, Blob, Fields, Fixed, Tagged, Text, UuidBytes, Wire
from protocol.schema.values import Value, frozen_default, value_namespace
from protocol.schema.versions import version_range

_UNSET: Any = object()


T = TypeVar("T")


class Declaration:
    """A type with a wire form in each version."""

    zero: Any = None
    """The default of fields of this type, unless they name another."""

    def at(self, version: int, *, flexible: bool, nullable: bool = False) -> Wire:
        """The construct for one version."""
        raise NotImplementedError


class _Primitive(Declaration):
    def __init__(self, field: FormatField, zero: Any) -> None:
        self._node = Fixed(field)
        self.zero = zero

    def at(self, version: int, *, flexible: bool, nullable: bool = False) -> Wire:
        return self._node


class _Uuid(Declaration):
    zero = bytes(16)

    def at(self, version: int, *, flexible: bool, nullable: bool = False) -> Wire:
        return UuidBytes()


class _Text(Declaration):
    zero = ""

    def at(self, version: int, *, flexible: bool, nullable: bool = False) -> Wire:
        return Text(compact=flexible, nullable=nullable)


class _Blob(Declaration):
    def __init__(self, zero: bytes | None) -> None:
        self.zero = zero

    def at(self, version: int, *, flexible: bool, nullable: bool = False) -> Wire:
        return Blob(compact=flexible, nullable=nullable)


Int8 = _Primitive(Int8sb, 0)
Int16 = _Primitive(Int16sb, 0)
Int32 = _Primitive(Int32sb, 0)
Int64 = _Primitive(Int64sb, 0)
UInt16 = _Primitive(Int16ub, 0)
UInt32 = _Primitive(Int32ub, 0)
Float64 = _Primitive(Float64b, 0.0)
Bool = _Primitive(FormatField(">", "?"), False)
Uuid = _Uuid()
Str = _Text()
Bytes = _Blob(b"")
Records = _Blob(None)
"""Record batches: parsed to a slice of the frame, built from anything that has a length."""


class Array(Declaration):
    """A sequence of elements, none of them null.

    may_be_encoded: elements, which are groups, are built from values and from `Encoded` ones alike.
    """

    zero = ()

    def __init__(self, element: Declaration, *, may_be_encoded: bool = False) -> None:
        self.element = element
        self.may_be_encoded = may_be_encoded

    def at(self, version: int, *, flexible: bool, nullable: bool = False) -> Wire:
        """The construct for one version."""
        element = self.element.at(version, flexible=flexible)
        return ArrayOf(
            element, compact=flexible, nullable=nullable, may_be_encoded=self.may_be_encoded
        )


class V(Construct):  # type: ignore[misc]  # construct ships no types
    """A field's versions and what changes between them.

    versions: those that have the field. nullable: those in which it may be null. default: its value
    where it is absent. tag: its number as a tagged field, in the versions `tagged` (by default in
    all of its versions). Only flexible versions may have tagged fields.
    """

    def __init__(
        self,
        versions: str,
        declaration: Declaration,
        *,
        nullable: str | None = None,
        default: Any = _UNSET,
        tag: int | None = None,
        tagged: str | None = None,
    ) -> None:
        super().__init__()
        self.declaration = declaration
        self.versions = version_range(versions)
        self.nullable = version_range(nullable)
        self.tag = tag
        self.tagged = version_range(None if tag is None else tagged or versions)
        if default is not _UNSET:
            self.default = default
        elif self._always_nullable() and not isinstance(declaration, Array):
            self.default = None
        elif isinstance(declaration, Group):
            self.default = frozen_default(declaration)
        else:
            self.default = declaration.zero

    def _always_nullable(self) -> bool:
        return self.versions[0] in self.nullable and self.versions[-1] in self.nullable


_METHODS = frozenset({"at", "codec", "element_codec", "flexible"})


class Group(type, Declaration):
    """A named group of fields: the class of its values, as `protocol.schema.values` has them.

    `group(field=content, …)` makes a value. Raises TypeError for a field that is not declared. The
    properties below belong to the class, so a value may have fields of the same names. A field must
    not have the name of a method.
    """

    _rules: Sequence[tuple[str, V]]

    def __new__(mcs, name: str, *fields: Any) -> Any:
        """Make a class with these fields, each `"name" / V(…)`."""
        rules = [(field.name, field.subcon) for field in fields]
        if hidden := _METHODS & {field for field, _ in rules}:
            raise TypeError(f"{name}: no field may be called {', '.join(hidden)}")
        cls: Any = super().__new__(
            mcs, name, (Value,), value_namespace({field: rule.default for field, rule in rules})
        )
        cls._rules = rules
        cls._declared = cls
        return cls

    def __init__(cls, name: str, *fields: Any) -> None:
        """Take the arguments of `__new__`, which did everything."""
        super().__init__(name, (Value,), {})

    @property
    def name(cls) -> str:
        """Kafka's name of the group."""
        return cls.__name__

    @property
    def fields(cls) -> Sequence[tuple[str, V]]:
        """The declared fields, in wire order."""
        return cls._rules

    def at(cls, version: int, *, flexible: bool, nullable: bool = False) -> Fields:
        """The construct for one version, without the fields that the version lacks."""
        fields: list[tuple[str, Wire]] = []
        tagged: list[Tagged] = []
        for name, rule in cls._rules:
            if version not in rule.versions:
                continue
            node = rule.declaration.at(
                version, flexible=flexible, nullable=version in rule.nullable
            )
            if version in rule.tagged:
                tagged.append(Tagged(rule.tag or 0, name, node, rule.default))
            else:
                fields.append((name, node))
        values: Any = cls
        return Fields(values, fields, tagged, flexible=flexible, nullable=nullable)


class Api(Group):
    """A whole message: the body of a request, a response, or a versioned record.

    key: the API's number, None for records. versions: those declared. flexible: those with compact
    lengths and tagged fields, "none" if there are none.
    """

    _key: int | None
    _versions: range
    _flexible: range
    _codecs: dict[int, Codec[Any]]

    def __new__(mcs, key: int | None, name: str, versions: str, flexible: str, *fields: Any) -> Any:
        """Make the class of one message."""
        cls = super().__new__(mcs, name, *fields)
        cls._key = key
        cls._versions = version_range(versions)
        cls._flexible = version_range(flexible)
        cls._codecs = {}
        return cls

    def __init__(
        cls, key: int | None, name: str, versions: str, flexible: str, *fields: Any
    ) -> None:
        """Take the arguments of `__new__`, which did everything."""
        super().__init__(name, *fields)

    @property
    def key(cls) -> int | None:
        """The API's number; None for records."""
        return cls._key

    @property
    def versions(cls) -> range:
        """The declared versions."""
        return cls._versions

    def flexible(cls, version: int) -> bool:
        """Whether the version has compact lengths and tagged fields."""
        return version in cls._flexible

    @property
    def flexible_since(cls) -> int | None:
        """The first flexible version, or None."""
        return cls._flexible.start if cls._flexible else None

    def at(cls, version: int, *, flexible: bool | None = None, nullable: bool = False) -> Fields:
        """The construct for one version. Raises ValueError for one that is not declared."""
        if version not in cls._versions:
            raise ValueError(f"{cls.__name__} has no version {version}")
        chosen = cls.flexible(version) if flexible is None else flexible
        return super().at(version, flexible=chosen, nullable=nullable)

    @overload
    def codec(cls: type[T], version: int) -> Codec[T]: ...
    @overload
    def codec(cls, version: int) -> Codec[Any]: ...
    def codec(cls: Any, version: int) -> Codec[Any]:
        """The codec for one version, made at the first call. Raises ValueError as `at` does."""
        codec: Codec[Any] | None = cls._codecs.get(version)
        if codec is None:
            codec = Codec(cls.at(version), f"{cls.__name__} v{version}")
            cls._codecs[version] = codec
        return codec

    def element_codec(cls, array: str, version: int) -> Codec[Any]:
        """A new codec for one element of the field `array`. Raises ValueError as `at` does."""
        node = dict(cls.at(version).fields)[array]
        assert isinstance(node, ArrayOf)
        return Codec(node.element, f"{cls.__name__}.{array} v{version}")
