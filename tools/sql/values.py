"""The values of a column in Arrow as Python values.

Python's years are 1 to 9999, those of DuckDB and of Kafka are more. A time of another year becomes
a text in the form of ISO 8601, where year 0 is 1 BC.
"""

import re
from typing import Any, Final

import pyarrow as pa

_INFINITY: Final = (2**31 - 1, 2**63 - 1)
"""DuckDB's `infinity` in days and in other units; with the other sign, `-infinity`."""


def python_values(column: Any) -> list[Any]:
    """Return the values of an array; a time that Python cannot hold is a text."""
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):  # ValueError: nanoseconds, where pandas is not installed
        return [_value(cell) for cell in column]


def _value(cell: Any) -> Any:
    try:
        return cell.as_py()
    except (OverflowError, ValueError):
        pass
    if pa.types.is_struct(cell.type):
        return {name: _value(inner) for name, inner in cell.items()}
    if pa.types.is_union(cell.type):
        return _value(cell.value)
    if pa.types.is_map(cell.type):
        return [tuple(_value(pair).values()) for pair in cell.values]
    if pa.types.is_nested(cell.type):
        return [_value(inner) for inner in cell.values]
    return _text(cell)


def _text(time: Any) -> str:
    if abs(time.value) in _INFINITY:
        return "infinity" if time.value > 0 else "-infinity"
    from numpy import datetime64

    unit: Any = "D" if pa.types.is_date(time.type) else time.type.unit
    text = re.sub(r"\.0+$", "", str(datetime64(time.value, unit)).replace("T", " "))
    return text + ("+00:00" if getattr(time.type, "tz", None) else "")
