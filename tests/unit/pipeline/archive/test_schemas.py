"""A later start may add fields to the schema of the values, and change nothing else."""

import json
from typing import Any

import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    MapType,
    TimestampType,
)

from pipeline.archive.description import Description
from pipeline.archive.schemas import Given, _schema_in, with_given, with_schemas
from pipeline.archive.tables.delta import DeltaTable
from pipeline.archive.values import Decoding, declared_schema
from pipeline.errors import PipelineError
from tests.unit.pipeline.archive.test_growth import LONG, TEXT, struct

TABLE: Any = DeltaTable.__new__(DeltaTable)


INT = IntegerType()


def described(schema: DataType) -> Description:
    return with_schemas(Description("delta", "bytes", "json"), Decoding("json", schema=schema))


def given(schema: DataType) -> Given:
    return Given(schema.json(), None, is_framed=False)


@pytest.mark.parametrize(
    "schema",
    [
        struct(a=LONG, **{"b c": TEXT}),
        ArrayType(struct(a=INT)),
        MapType(TEXT, struct(a=INT)),
    ],
)
def test_a_schema_is_kept_and_read_back(schema: DataType) -> None:
    kept = Description.parse(described(schema).text(), "there")
    assert _schema_in(kept) == schema == declared_schema(schema.json())


def test_the_same_schema_or_a_part_of_it_changes_nothing() -> None:
    whole = struct(a=LONG, b=struct(x=TEXT))
    begun = described(whole)
    for schema in (whole, struct(b=struct(x=TEXT), a=LONG), struct(a=LONG)):
        assert with_given(begun, given(schema), TABLE) == begun
    assert with_given(begun, Given(None, None, is_framed=False), TABLE) == begun


def test_a_new_field_gets_the_type_that_is_given() -> None:
    later = with_given(described(struct(a=LONG)), given(struct(at=TimestampType(), a=LONG)), TABLE)
    assert _schema_in(later) == struct(a=LONG, at=TimestampType())
    later = with_given(described(ArrayType(struct(a=INT))), given(ArrayType(struct(b=INT))), TABLE)
    assert _schema_in(later) == ArrayType(struct(a=INT, b=INT))


def test_what_contradicts_the_table_is_refused() -> None:
    with pytest.raises(PipelineError, match=r"gives b\.x another type than the table has"):
        with_given(
            described(struct(a=LONG, b=struct(x=TEXT))), given(struct(b=struct(x=INT))), TABLE
        )
    for name in ("A", "b c"):
        with pytest.raises(PipelineError, match=f"{name} cannot be a column"):
            with_given(described(struct(a=LONG)), given(struct(**{name: TEXT})), TABLE)


ONE = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}
TWO = {**ONE, "fields": [*ONE["fields"], {"name": "b", "type": "long"}]}


def test_another_avro_schema_is_read_by_only_where_values_name_theirs() -> None:
    begun = Description("delta", "bytes", "avro", avro_schema=json.dumps(ONE))

    def later(schema: Any, *, is_framed: bool) -> str | None:
        avro = Given(None, json.dumps(schema, indent=1), is_framed=is_framed)
        return with_given(begun, avro, TABLE).avro_schema

    assert later(ONE, is_framed=False) == later(ONE, is_framed=True) == begun.avro_schema
    grown = later(TWO, is_framed=True)
    assert grown is not None and [f["name"] for f in json.loads(grown)["fields"]] == ["a", "b"]
    with pytest.raises(PipelineError, match="is not the schema that the table was begun with"):
        later(TWO, is_framed=False)
