"""Finds the fields of JSON values that a schema does not have, as expressions of Spark.

`from_json` leaves such fields out without a word, and of a field that is named twice it keeps the
last. Both show in Spark's variants. A field that holds nothing (null, `{}`, `[]`, or only such) is
not missed: its type is not known yet, and without a column it reads as null.
"""

from typing import Any, Final

from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

_FIELDS: Final = "map<string, variant>"
_NESTED: Final = (StructType, ArrayType, MapType)
_HOLDS: Final = r"\b(STRING|BOOLEAN|BIGINT|DOUBLE|FLOAT|DECIMAL\(\d+,\d+\))([,>]|$)"
"""The type of a value, which no colon follows, in what `schema_of_variant` says."""


def unknown_fields(value: Any, schema: DataType, at: str = "") -> Any:
    """Return the paths of the fields of a variant that the schema does not have: an array."""
    none = F.array().cast("array<string>")
    if isinstance(schema, StructType):

        def of_struct(fields: Any) -> Any:
            known = F.array(*(F.lit(field.name) for field in schema.fields)).cast("array<string>")
            new = F.filter(
                F.array_except(F.map_keys(fields), known),
                lambda name: F.schema_of_variant(fields[name]).rlike(_HOLDS),
            )
            parts = [F.transform(new, lambda name: F.concat(F.lit(at), name)) if at else new]
            parts += [
                unknown_fields(fields[field.name], field.dataType, f"{at}{field.name}.")
                for field in schema.fields
                if isinstance(field.dataType, _NESTED)
            ]
            return F.coalesce(F.concat(*parts), none)

        # An array of one gives the map a name, so that it is made once.
        found = F.flatten(F.transform(F.array(value.try_cast(_FIELDS)), of_struct))
    elif isinstance(schema, ArrayType):
        element = schema.elementType
        if not isinstance(element, _NESTED):
            return none
        found = F.flatten(
            F.transform(
                value.try_cast("array<variant>"), lambda one: unknown_fields(one, element, at)
            )
        )
    elif isinstance(schema, MapType) and isinstance(schema.valueType, _NESTED):
        kind = schema.valueType
        found = F.flatten(
            F.transform(
                F.map_values(value.try_cast(_FIELDS)), lambda one: unknown_fields(one, kind, at)
            )
        )
    else:
        return none
    return F.coalesce(found, none)
