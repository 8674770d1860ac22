"""How a schema of JSON values takes over new fields: the decision, without Spark's help."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from pipeline.archive.growth import MOST_FIELDS, Growth, differing, fields_of, grown
from pipeline.errors import PipelineError


def struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


LONG, TEXT = LongType(), StringType()


def test_nothing_new_is_no_growth() -> None:
    have = struct(a=LONG, b=struct(x=TEXT))
    assert grown(have, have) == Growth(have)
    assert grown(have, struct(b=struct(), a=LONG)) == Growth(have)
    assert grown(have, struct()) == Growth(have)


def test_new_fields_stand_behind_those_that_are_there() -> None:
    growth = grown(struct(b=LONG), struct(a=TEXT, b=LONG, c=LONG))
    assert growth.schema == struct(b=LONG, a=TEXT, c=LONG)
    assert growth.added == ("a STRING", "c BIGINT")


def test_a_type_never_changes() -> None:
    have = struct(a=LONG, b=struct(x=LONG), c=ArrayType(LONG), d=MapType(TEXT, LONG))
    found = struct(a=TEXT, b=TEXT, c=struct(y=LONG), d=LONG)
    assert grown(have, found) == Growth(have)


def test_new_fields_within_structs_arrays_and_maps() -> None:
    have = struct(
        s=struct(x=LONG),
        l=ArrayType(ArrayType(struct(x=LONG))),
        m=MapType(TEXT, struct(x=LONG)),
    )
    more = struct(x=LONG, y=TEXT)
    found = struct(s=more, l=ArrayType(ArrayType(more)), m=struct(one=struct(x=LONG), two=more))
    growth = grown(have, found)
    assert growth.schema == struct(s=more, l=ArrayType(ArrayType(more)), m=MapType(TEXT, more))
    assert growth.added == ("s.y STRING", "l.y STRING", "m.y STRING")
    assert growth.refused == ()


@pytest.mark.parametrize(
    ("have", "found", "refused"),
    [
        (struct(id=LONG), struct(Id=LONG), ("Id",)),
        (struct(s=struct(id=LONG)), struct(s=struct(ID=LONG)), ("s.ID",)),
        (struct(), struct(A=LONG, a=LONG), ("a",)),
        (struct(), struct(s=struct(A=LONG, a=LONG)), ("s.a",)),
        (struct(), struct(l=ArrayType(struct(A=LONG, a=LONG))), ("l.a",)),
    ],
)
def test_names_that_differ_in_case_only_are_one_column(
    have: StructType, found: StructType, refused: tuple[str, ...]
) -> None:
    growth = grown(have, found)
    assert growth.refused == refused
    assert grown(growth.schema, found).added == ()


def test_names_that_the_format_cannot_hold() -> None:
    found = struct(**{"a b": LONG, "s": struct(**{"x y": LONG}), "t": struct(x=LONG)})
    growth = grown(struct(), found, lambda name: " " not in name)
    assert growth.schema == struct(t=struct(x=LONG))
    assert growth.refused == ("a b", "s.x y", "s")


@pytest.mark.parametrize(("fields", "is_too_much"), [(MOST_FIELDS, False), (MOST_FIELDS + 1, True)])
def test_names_that_are_data_are_no_columns(fields: int, is_too_much: bool) -> None:
    inner = struct(**{f"user-{number}": LONG for number in range(fields - 2)})
    found = struct(a=ArrayType(inner), b=LONG)
    assert fields_of(found) == fields
    assert grown(found, found).schema == found  # as it was declared
    if is_too_much:
        with pytest.raises(PipelineError, match=r"more than 500 fields, such as a, b"):
            grown(struct(), found)
    else:
        assert grown(struct(), found).schema == found


def test_the_place_where_two_schemas_differ() -> None:
    have = struct(a=LONG, s=struct(x=LONG), l=ArrayType(LONG), m=MapType(TEXT, struct(x=LONG)))
    assert differing(have, struct(a=LONG, new=TEXT, s=struct(y=TEXT))) == []
    given = struct(
        a=TEXT, s=struct(x=TEXT), l=ArrayType(TEXT), m=MapType(TEXT, struct(x=TEXT, y=LONG))
    )
    assert differing(have, given) == ["a", "s.x", "l", "m.x"]
    assert differing(struct(m=MapType(TEXT, LONG)), struct(m=MapType(LONG, LONG))) == ["m"]
    assert differing(LONG, TEXT) == ["value"]
