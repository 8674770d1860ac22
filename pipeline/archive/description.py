"""`archive.json`: what a table was begun as. A later start must agree, and keeps the schema.

The description is written before the first batch, so a batch that is given again is decoded as it
was the first time.
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
    """Of JSON values, in Spark's JSON form."""
    avro_schema: str | None = None

    def text(self) -> str:
        """As the file has it."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def parse(cls, text: str, path: str) -> "Description":
        """Raises PipelineError when it is none."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise PipelineError(f"{path} is no description of an archive: {error}") from None

    def require_same(self, wanted: "Description", path: str) -> None:
        """Raises PipelineError when another kind of table is asked for than there is."""
        for name, option in (("table", "--format"), ("key", "--key"), ("value", "--value")):
            have, want = getattr(self, name), getattr(wanted, name)
            if have != want:
                raise PipelineError(
                    f"the table was begun with {option} {have}, not {want}; see {path}"
                )
