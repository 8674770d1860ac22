"""How the schema of JSON values grows: it takes over the fields that it does not have yet.

`grown` adds; it never changes the type of a field that is there. A name that differs from another
one only in upper and lower case is refused, because Spark, Delta and most engines take both for the
same column; so is a name that the table's format cannot hold.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from pipeline.errors import PipelineError

MOST_FIELDS: Final = 500
"""The most fields, at any depth, that a schema may have after it has grown. More are not fields but
data that stands where names stand; and each costs a writer of Parquet memory: 2,000 took the heap
of a JVM with 1 GB."""


@dataclass(frozen=True, slots=True)
class Growth:
    """A schema and what distinguishes it from the one before."""

    schema: DataType
    added: tuple[str, ...] = ()
    """Path and type of each new field, where a dot leads into a struct: `item.color STRING`."""
    refused: tuple[str, ...] = ()
    """Paths of fields that cannot be columns."""


def grown(
    have: DataType, found: DataType, allows: Callable[[str], bool] = lambda _name: True
) -> Growth:
    """Return `have` with the fields that only `found` has. Raises PipelineError at `MOST_FIELDS`.

    `allows` says whether the table's format takes a name.
    """
    growing = _Growing(allows)
    schema = growing.both(have, found, "")
    if growing.added and fields_of(schema) > MOST_FIELDS:
        raise too_many(growing.added)
    return Growth(schema, tuple(growing.added), tuple(growing.refused))


class _Growing:
    def __init__(self, allows: Callable[[str], bool]) -> None:
        self._allows = allows
        self.added: list[str] = []
        self.refused: list[str] = []

    def both(self, old: DataType, new: DataType, at: str) -> DataType:
        """Return the type at a place where both schemas have one."""
        if isinstance(old, StructType) and isinstance(new, StructType):
            known = {field.name: field.dataType for field in new.fields}
            fields = [
                StructField(
                    field.name,
                    self.both(field.dataType, known[field.name], f"{at}{field.name}.")
                    if field.name in known
                    else field.dataType,
                    field.nullable,
                    field.metadata,
                )
                for field in old.fields
            ]
            more = self._more(fields, new, at)
            self.added += [
                f"{at}{field.name} {field.dataType.simpleString().upper()}" for field in more
            ]
            return StructType([*fields, *more])
        if isinstance(old, ArrayType) and isinstance(new, ArrayType):
            return ArrayType(self.both(old.elementType, new.elementType, at), old.containsNull)
        if isinstance(old, MapType) and isinstance(new, StructType):
            value = old.valueType
            for field in new.fields:
                value = self.both(value, field.dataType, at)
            return MapType(old.keyType, value, old.valueContainsNull)
        return old

    def _more(self, fields: list[StructField], new: StructType, at: str) -> list[StructField]:
        """Return the fields of `new` that can stand behind `fields`."""
        names = {field.name for field in fields}
        lowered = {name.lower() for name in names}
        more = []
        for field in new.fields:
            if field.name in names:
                continue
            kind = self._alone(field.dataType, f"{at}{field.name}.")
            if kind is None or field.name.lower() in lowered or not self._allows(field.name):
                self.refused.append(f"{at}{field.name}")
            else:
                lowered.add(field.name.lower())
                more.append(StructField(field.name, kind))
        return more

    def _alone(self, kind: DataType, at: str) -> DataType | None:
        """Return a new field's type without what is refused of it; None if nothing is left."""
        if isinstance(kind, StructType):
            left = self._more([], kind, at)
            return StructType(left) if left else None
        if isinstance(kind, ArrayType):
            element = self._alone(kind.elementType, at)
            return None if element is None else ArrayType(element)
        return kind


def too_many(fields: Sequence[str]) -> PipelineError:
    """Return the error of values with more than `MOST_FIELDS` fields, such as these."""
    some = ", ".join(field.partition(" ")[0] for field in fields[:3])
    return PipelineError(
        f"the values have more than {MOST_FIELDS:,} fields, such as {some}: where names are data,"
        " declare a MAP (--json-schema 'tags MAP<STRING, STRING>'), or take --new-fields refuse or"
        " drop"
    )


def fields_of(kind: DataType) -> int:
    """Return the number of fields in a type, at any depth."""
    if isinstance(kind, StructType):
        return sum(1 + fields_of(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return fields_of(kind.elementType)
    return fields_of(kind.valueType) if isinstance(kind, MapType) else 0


def differing(have: DataType, given: DataType, at: str = "") -> list[str]:
    """Return the paths at which `given` has another type than `have`."""
    if isinstance(have, StructType) and isinstance(given, StructType):
        types = {field.name: field.dataType for field in have.fields}
        return [
            path
            for field in given.fields
            if field.name in types
            for path in differing(types[field.name], field.dataType, f"{at}{field.name}.")
        ]
    if isinstance(have, ArrayType) and isinstance(given, ArrayType):
        return differing(have.elementType, given.elementType, at)
    if isinstance(have, MapType) and isinstance(given, MapType) and have.keyType == given.keyType:
        return differing(have.valueType, given.valueType, at)
    return [] if have == given else [at.removesuffix(".") or "value"]
