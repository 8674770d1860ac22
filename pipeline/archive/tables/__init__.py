"""The formats of a table in the lake: a module for each, which implements `LakeTable`."""

from typing import Final

FORMATS: Final = ("parquet", "iceberg", "delta")
"""The values of `--format`."""
