"""How the reader's Avro schema takes over what newer schemas have; fastavro reads by the result."""

import io
import json
from typing import Any

import pytest

from pipeline.archive.avro_growth import grown_avro
from pipeline.errors import PipelineError

fastavro = pytest.importorskip("fastavro")


def record(name: str, *fields: tuple[str, Any], **more: Any) -> dict[str, Any]:
    listed = [{"name": field, "type": kind} for field, kind in fields]
    return {"type": "record", "name": name, "fields": listed, **more}


ADDRESS = record("Address", ("street", "string"))
KIND = {"type": "enum", "name": "Kind", "symbols": ["A", "B"], "default": "A"}


def read(value: Any, writer: Any, reader: str) -> Any:
    data = io.BytesIO()
    fastavro.schemaless_writer(data, fastavro.parse_schema(writer), value)
    data.seek(0)
    schemas = fastavro.parse_schema(writer), fastavro.parse_schema(json.loads(reader))
    return fastavro.schemaless_reader(data, *schemas)


def grow(reader: Any, writer: Any) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    growth = grown_avro(json.dumps(reader), json.dumps(writer))
    again = grown_avro(growth.schema, json.dumps(writer))
    assert (again.schema, again.added) == (growth.schema, ())
    return growth.schema, growth.added, growth.refused


@pytest.mark.parametrize(
    "schema",
    ["long", record("R", ("a", "long")), ["null", record("R", ("a", KIND), ("b", "Kind"))]],
)
def test_an_equal_schema_brings_nothing(schema: Any) -> None:
    assert grow(schema, schema) == (json.dumps(schema), (), ())


def test_a_new_field_may_be_null_and_is_null_in_older_records() -> None:
    old, new = record("R", ("a", "long")), record("R", ("b", "string"), ("a", "long"))
    schema, added, refused = grow(old, new)
    assert (added, refused) == (("b",), ())
    assert read({"a": 1, "b": "x"}, new, schema) == {"a": 1, "b": "x"}
    assert read({"a": 1}, old, schema) == {"a": 1, "b": None}


def test_a_field_that_a_newer_schema_lacks_stays() -> None:
    schema, added, _ = grow(record("R", ("a", "long"), ("b", "long")), record("R", ("a", "long")))
    assert added == ()
    assert [field["name"] for field in json.loads(schema)["fields"]] == ["a", "b"]


def test_named_types_come_along_and_are_defined_once() -> None:
    old = record("R", ("id", "long"), ("home", ADDRESS), namespace="shop")
    wider = {**ADDRESS, "fields": [*ADDRESS["fields"], {"name": "city", "type": "string"}]}
    new = record(
        "R",
        ("id", "long"),
        ("home", wider),
        ("work", ["null", "Address"]),
        ("kinds", {"type": "map", "values": {"type": "array", "items": KIND}}),
        ("kind", "Kind"),
        ("id16", {"type": "fixed", "name": "Id", "size": 2}),
        namespace="shop",
    )
    schema, added, _ = grow(old, new)
    assert added == ("home.city", "work", "kinds", "kind", "id16")
    value = {
        "id": 1,
        "home": {"street": "s", "city": "c"},
        "work": {"street": "t", "city": "d"},
        "kinds": {"k": ["B"]},
        "kind": "A",
        "id16": b"ab",
    }
    assert read(value, new, schema) == value
    older = read({"id": 1, "home": {"street": "s"}}, old, schema)
    assert older["home"] == {"street": "s", "city": None} and older["kinds"] is None


def test_a_new_field_of_a_type_that_is_there_but_narrower_widens_it() -> None:
    old = record("R", ("home", ADDRESS))
    wider = {**ADDRESS, "fields": [*ADDRESS["fields"], {"name": "city", "type": "string"}]}
    new = record("R", ("work", wider), ("home", "Address"))
    schema, added, _ = grow(old, new)
    assert added == ("work", "Address.city")
    home, work = json.loads(schema)["fields"]
    assert [field["name"] for field in home["type"]["fields"]] == ["street", "city"]
    assert work["type"] == ["null", "Address"]


def test_unions_meet_by_their_branches() -> None:
    wider = {**ADDRESS, "fields": [*ADDRESS["fields"], {"name": "city", "type": "string"}]}
    for old, new in (
        (["null", ADDRESS], wider),
        (ADDRESS, ["null", wider]),
        (["string", {"type": "array", "items": ADDRESS}], {"type": "array", "items": wider}),
    ):
        _, added, _ = grow(record("R", ("at", old)), record("R", ("at", new)))
        assert added == ("at.city",)
    # A union with null at another place keeps its other branches.
    new = record("R", ("a", "long"), ("b", ["string", "null", "long"]))
    schema, _, _ = grow(record("R", ("a", "long")), new)
    assert json.loads(schema)["fields"][1]["type"] == ["null", "string", "long"]
    assert read({"a": 1, "b": 5}, new, schema) == {"a": 1, "b": 5}


def test_symbols_of_an_enum_with_a_default_are_not_lost() -> None:
    wider = {**KIND, "symbols": ["B", "C", "A"]}
    schema, added, _ = grow(record("R", ("k", KIND)), record("R", ("k", wider)))
    assert added == ("k=C",)
    assert read({"k": "C"}, record("R", ("k", wider)), schema) == {"k": "C"}


def test_a_field_by_its_alias_is_no_new_one() -> None:
    old = record("R", ("a", "long"))
    old["fields"][0]["aliases"] = ["was"]
    assert grow(old, record("R", ("was", "long")))[1:] == ((), ())


def test_a_name_that_differs_in_case_only_is_refused() -> None:
    old = record("R", ("id", "long"), ("in", ADDRESS))
    new = record("R", ("ID", "long"), ("in", record("Address", ("Street", "string"))))
    assert grow(old, new)[1:] == ((), ("ID", "in.Street"))
    assert grow(old, record("R", ("B", "long"), ("b", "long")))[1:] == (("B",), ("b",))


def test_a_field_that_is_only_ever_null_is_nothing_new() -> None:
    assert grow(record("R", ("a", "long")), record("R", ("n", "null")))[1:] == ((), ())


def test_a_schema_that_leads_to_itself_ends() -> None:
    old = record("Node", ("next", ["null", "Node"]))
    new = record("Node", ("next", ["null", "Node"]), ("v", "long"))
    assert grow(old, new)[1] == ("v",)


def test_what_is_no_schema_is_told() -> None:
    with pytest.raises(PipelineError, match="no JSON"):
        grown_avro("{", '"long"')
