"""How messages are declared: once for all versions, in construct's `"name" / subcon` idiom.

    PartitionData = Group(
        "PartitionData",
        "index"   / V("0+", Int32),
        "records" / V("0+", Records, nullable="0+"),
    )

A declaration is version-neutral: it is a construct by its syntax, but cannot parse before `at`
chose a version and turned it into the tree of `protocol.schema.constructs`.

Defaults. A field that a version lacks, and one that was never set, reads as its default: 0, False,
"", b"", 16 zero bytes, a group of defaults; but None when it may be null in all its versions. An
absent array is () unless it says `default=None`. On the wire a default matters for tagged fields
only: they are left out when equal to it.
"""

from typing import Any

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
    Subconstruct,
)

from protocol.schema.codec import Codec
from protocol.schema.constructs import ArrayOf, Blob, Fields, Fixed, Tagged, Text, UuidBytes, Wire
from protocol.schema.values import frozen_default, value_class
from protocol.schema.versions import version_range

_UNSET: Any = object()


class Declaration(Construct):  # type: ignore[misc]  # construct ships no types
    """Something that has a wire form in each version."""

    zero: Any = None
    """The default of a field of this kind that names none."""

    def at(self, version: int, *, flexible: bool, nullable: bool = False) -> Wire:
        """The construct for one version."""
        raise NotImplementedError


class _Primitive(Declaration):
    def __init__(self, field: FormatField, zero: Any) -> None:
        super().__init__()
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
        super().__init__()
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
"""Record batches: parsed as a slice of the frame, built from anything that has a length."""


class Array(Declaration):
    """A sequence of elements, none of them null."""

    zero = ()

    def __init__(self, element: Declaration) -> None:
        super().__init__()
        self.element = element

    def at(self, version: int, *, flexible: bool, nullable: bool = False) -> Wire:
        """The construct for one version."""
        element = self.element.at(version, flexible=flexible)
        return ArrayOf(element, compact=flexible, nullable=nullable)


class V(Subconstruct):  # type: ignore[misc]  # construct ships no types
    """A field's versions and what changes between them.

    versions: those that have the field. nullable: those in which it may be null. default: its value
    where it is absent. tag: its number as a tagged field, in the versions `tagged` (all, if not
    said). A field may be tagged in flexible versions only.
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
        super().__init__(declaration)
        self.versions = version_range(versions)
        self.nullable = version_range(nullable)
        self.tag = tag
        self.tagged = version_range(None if tag is None else tagged or versions)
        if default is not _UNSET:
            self.default = default
        elif self._always_nullable() and not isinstance(declaration, Array):
            self.default = None
        elif isinstance(declaration, Group):
            self.default = frozen_default(declaration.cls)
        else:
            self.default = declaration.zero

    def _always_nullable(self) -> bool:
        return self.versions[0] in self.nullable and self.versions[-1] in self.nullable


class Group(Declaration):
    """A named group of fields. `group(**fields)` makes a value, `group.cls` is the value's class.

    The hot path makes values as `value = group.cls()` and sets attributes: half the cost.
    """

    def __init__(self, name: str, *fields: Any) -> None:
        super().__init__()
        self.name = name
        self.fields: list[tuple[str, V]] = [(field.name, field.subcon) for field in fields]
        self.cls = value_class(name, {field: rule.default for field, rule in self.fields})

    def __call__(self, **fields: Any) -> Any:
        """A value with these fields. Raises TypeError for a name that is not declared."""
        value = self.cls()
        for name, content in fields.items():
            if name not in self.cls._fields:
                raise TypeError(f"{self.name} has no field {name!r}")
            setattr(value, name, content)
        return value

    def at(self, version: int, *, flexible: bool, nullable: bool = False) -> Fields:
        """The construct for one version: fields that the version lacks are not in it."""
        fields: list[tuple[str, Wire]] = []
        tagged: list[Tagged] = []
        for name, rule in self.fields:
            if version not in rule.versions:
                continue
            node = rule.subcon.at(version, flexible=flexible, nullable=version in rule.nullable)
            if version in rule.tagged:
                tagged.append(Tagged(rule.tag or 0, name, node, rule.default))
            else:
                fields.append((name, node))
        return Fields(self.cls, fields, tagged, flexible=flexible, nullable=nullable)


class Api(Group):
    """A whole message: the body of a request, a response, or a versioned record.

    key: the API's number, None for records. versions: those declared. flexible: those with compact
    lengths and tagged fields, "none" if there are none.
    """

    def __init__(self, key: int | None, name: str, versions: str, flexible: str, *fields: Any):
        super().__init__(name, *fields)
        self.key = key
        self.versions = version_range(versions)
        self._flexible = version_range(flexible)
        self._codecs: dict[int, Codec] = {}

    def flexible(self, version: int) -> bool:
        """True when the version has compact lengths and tagged fields."""
        return version in self._flexible

    @property
    def flexible_since(self) -> int | None:
        """The first flexible version, or None."""
        return self._flexible.start if self._flexible else None

    def at(self, version: int, *, flexible: bool | None = None, nullable: bool = False) -> Fields:
        """The construct for one version. Raises ValueError for one that is not declared."""
        if version not in self.versions:
            raise ValueError(f"{self.name} has no version {version}")
        chosen = self.flexible(version) if flexible is None else flexible
        return super().at(version, flexible=chosen, nullable=nullable)

    def codec(self, version: int) -> Codec:
        """The codec for one version, made at the first call. Raises ValueError as `at` does."""
        codec = self._codecs.get(version)
        if codec is None:
            codec = Codec(self.at(version), f"{self.name} v{version}")
            self._codecs[version] = codec
        return codec
