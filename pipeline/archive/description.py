"""`archive.json`: the formats that a table was begun with, and its schema.

A later start must name the same formats, and uses the same schema. The description is written
before the first batch, so a batch that is repeated is decoded in the same way.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any

from pipeline.errors import PipelineError


@dataclass(frozen=True, slots=True)
class Description:
    """Formats of the table, of keys and of values, and the values' schema where they have one."""

    table: str
    key: str
    value: str
    schema: Any = None
    """Schema of JSON values: Spark's JSON form, or DDL."""
    avro_schema: str | None = None

    def text(self) -> str:
        """Return the file's text."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def parse(cls, text: str, path: str) -> "Description":
        """Parse the file's text. Raises PipelineError if it is not a description."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise PipelineError(f"{path} is no description of an archive: {error}") from None

    def require_same(self, wanted: "Description", path: str) -> None:
        """Raise PipelineError if `wanted` has other formats than the table."""
        for name, option in (("table", "--format"), ("key", "--key"), ("value", "--value")):
            have, want = getattr(self, name), getattr(wanted, name)
            if have != want:
                raise PipelineError(
                    f"the table was begun with {option} {have}, not {want}; see {path}"
                )
