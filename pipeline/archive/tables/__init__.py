"""The formats of a table in the lake: one module each, all with the face of `LakeTable`."""

from typing import Final

FORMATS: Final = ("parquet", "iceberg", "delta")
"""What `--format` may say."""
