"""Decodes batch after batch while the values get new fields, and reports what became of these.

Each batch is looked at before it is decoded: JSON for fields that the schema does not have, Avro
for schema ids whose schemas have such. Then, by choice (`NewFields`),

* columns: the schema grows. It is stored before the batch is written, so a batch that is repeated
  finds its fields known and is decoded in the same way. A field that cannot be a column is refused.
* refuse: a value with such a field is not as declared.
* drop: the fields are left out, and the records that lost some are counted.
"""

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final

from pyspark.sql import functions as F

from pipeline.archive import avro_values
from pipeline.archive.avro_growth import grown_avro
from pipeline.archive.growth import MOST_FIELDS, grown, too_many
from pipeline.archive.unknown import unknown_fields
from pipeline.archive.values import ERROR, TIME_ERROR, Decoding, Known, inferred
from pipeline.archive.written import News

NAMED: Final = 20
"""The most names of dropped fields that a batch reports."""


class NewFields(StrEnum):
    """The treatment of fields that the table does not have."""

    COLUMNS = "columns"
    REFUSE = "refuse"
    DROP = "drop"


class Evolving:
    """The decoding of one archive, as of its last batch."""

    def __init__(
        self,
        decoding: Decoding,
        choice: NewFields = NewFields.COLUMNS,
        *,
        store: Callable[[Decoding], None] = lambda _decoding: None,
        allows: Callable[[str], bool] = lambda _name: True,
    ) -> None:
        """`store` keeps a schema that has grown, `allows` is the table's choice of names."""
        self.decoding = decoding
        self._choice = choice
        self._store = store
        self._allows = allows

    def decoded(self, frame: Any) -> tuple[Any, News]:
        """Return the decoded batch (`Decoding.apply`), and its news. Raises PipelineError."""
        # A record that is not taken anyway brings no column.
        taken = frame.where(F.col(TIME_ERROR).isNull()) if TIME_ERROR in frame.columns else frame
        if self.decoding.value == "json":
            known, news = self._json(taken)
        elif self.decoding.registry is not None:
            known, news = self._avro(taken)
        else:
            known, news = Known(), News()
        return self.decoding.apply(frame, known), news

    def _json(self, frame: Any) -> tuple[Known, News]:
        schema = self.decoding.schema
        assert schema is not None
        text = F.col("value").cast("string")
        # A column of its own, so that Spark parses a value once.
        parsed = frame.where(text.isNotNull()).select(F.try_parse_json(text).alias("parsed"))
        row = parsed.select(
            F.count_if(F.col("parsed").isNull()).alias("odd"),
            F.count_if(F.size(unknown_fields(F.col("parsed"), schema)) > 0).alias("new"),
        ).first()
        if not row["new"]:
            # An odd value is no JSON at all, or names a field twice.
            return Known(strictly=row["odd"] > 0, drops=True), News()
        if self._choice is NewFields.REFUSE:
            return Known(), News()
        # A value that is not taken adds no field.
        taken = self.decoding.apply(
            frame.select(
                "key",
                "value",
                text.alias("text"),
                unknown_fields(F.try_parse_json(text), schema).alias("unknown"),
            ),
            Known(drops=True),
        ).where(f"{ERROR} IS NULL AND size(unknown) > 0")
        names = self._names(taken.select(F.explode("unknown").alias("name")))
        if self._choice is NewFields.DROP:
            return Known(drops=True), News(dropped=taken.count(), names=tuple(names[:NAMED]))
        found = inferred(frame.sparkSession, taken.select("text"))
        growth = grown(schema, found, self._allows)
        self._grow(replace(self.decoding, schema=growth.schema), growth.added)
        return Known(), News(columns=growth.added)

    def _names(self, names: Any) -> list[str]:
        """Return the distinct names, sorted. Raises PipelineError for too many to be columns."""
        rows = names.distinct().limit(MOST_FIELDS + 1).collect()
        found = sorted(row["name"] for row in rows)
        if len(found) > MOST_FIELDS and self._choice is NewFields.COLUMNS:
            raise too_many(found)
        return found

    def _avro(self, frame: Any) -> tuple[Known, News]:
        decoding = self.decoding
        assert decoding.avro_schema is not None and decoding.registry is not None
        number = avro_values.schema_id()
        rows = frame.where("value IS NOT NULL").groupBy(number.alias("id")).count().collect()
        counts = {row["id"]: row["count"] for row in rows if row["id"] is not None}
        written_as = {
            one: schema
            for one in sorted(counts)
            if (schema := decoding.registry.schema(one)) is not None
        }
        added: list[str] = []
        lost: dict[int, tuple[str, ...]] = {}
        reader = decoding.avro_schema
        for one, schema in written_as.items():
            growth = grown_avro(reader, schema)
            if self._choice is NewFields.COLUMNS:
                reader = growth.schema
                added += growth.added
                left_out = growth.refused
            else:
                left_out = (*growth.added, *growth.refused)
            if left_out:
                lost[one] = left_out
        if self._choice is NewFields.DROP:
            names = sorted({name for paths in lost.values() for name in paths})
            dropped = sum(counts[one] for one in lost)
            return Known(written_as=written_as), News(dropped=dropped, names=tuple(names[:NAMED]))
        self._grow(replace(decoding, avro_schema=reader), tuple(added))
        return Known(written_as=written_as, refused=lost), News(columns=tuple(added))

    def _grow(self, decoding: Decoding, added: tuple[str, ...]) -> None:
        if added:
            self._store(decoding)
            self.decoding = decoding
