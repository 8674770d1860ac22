"""The schema of an archive's values: described by the first start, and kept beside the table.

A later start uses the kept schema. The schema that `--json-schema` or `--avro-schema` gives must
agree with it, and may add fields to it: so a new field gets the type that its owner wants.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from pipeline.archive.archiving import Source
from pipeline.archive.avro_growth import grown_avro
from pipeline.archive.description import Description
from pipeline.archive.evolving import Evolving, NewFields
from pipeline.archive.files import Files
from pipeline.archive.growth import differing, grown
from pipeline.archive.place import Place
from pipeline.archive.registry import Registry
from pipeline.archive.tables.table import LakeTable
from pipeline.archive.values import Decoding, declared_schema, infer_json_schema, stored_schema
from pipeline.errors import PipelineError

SAMPLE: Final = 2_000
"""The most values from which a schema is inferred."""


def values_of(
    args: argparse.Namespace, session: Any, source: Source, place: Place, table: LakeTable
) -> Evolving:
    """Return the decoding that the description beside the table tells; the first start writes it.

    Raises PipelineError.
    """
    files = Files(session)
    if not table.is_empty and not files.entries(place.checkpoint):
        raise PipelineError(
            f"{place.table} has data, but its checkpoint {place.checkpoint} is gone: to read the"
            " topics again would bring records twice; name the right --state, or another table"
        )
    registry = Registry(args.schema_registry) if args.schema_registry else None
    wanted = Description(args.format, args.key, args.value)
    text = files.read(place.description)
    if text is None:
        described = _first(args, wanted, session, source, registry)
    else:
        described = Description.parse(text, place.description)
        described.require_same(wanted, place.description)
        described = with_given(described, _given(args), table)
    if described.text() != text:
        files.write(place.description, described.text())

    def store(decoding: Decoding) -> None:
        files.write(place.description, with_schemas(described, decoding).text())

    decoding = Decoding(
        args.value, args.key, _schema_in(described), described.avro_schema, registry
    )
    return Evolving(decoding, NewFields(args.new_fields), store=store, allows=table.allows)


def with_schemas(described: Description, decoding: Decoding) -> Description:
    """Return the description with the schemas of a decoding."""
    schema = decoding.schema
    kept = schema.jsonValue() if isinstance(schema, _KEPT_AS_JSON) else described.schema
    return replace(described, schema=kept, avro_schema=decoding.avro_schema)


def with_given(described: Description, given: "Given", table: LakeTable) -> Description:
    """Return the description with the fields that a later start was given. Raises PipelineError."""
    if given.json is not None:
        have, wanted = _schema_in(described), declared_schema(given.json)
        assert have is not None
        others = differing(have, wanted)
        if others:
            raise PipelineError(
                f"--json-schema gives {others[0]} another type than the table has: begin another"
                " table for it"
            )
        growth = grown(have, wanted, table.allows)
        if growth.refused:
            raise PipelineError(f"--json-schema: {growth.refused[0]} cannot be a column")
        return with_schemas(described, Decoding(schema=growth.schema, avro_schema=None))
    if given.avro is not None and described.avro_schema is not None:
        if given.is_framed:
            grown_schema = grown_avro(described.avro_schema, given.avro).schema
            return replace(described, avro_schema=grown_schema)
        if json.loads(given.avro) != json.loads(described.avro_schema):
            raise PipelineError(
                "--avro-schema is not the schema that the table was begun with. Values without a"
                " schema id are all read by one schema: begin another table, or take a registry"
            )
    return described


class Given:
    """The schemas that a start was given, as texts."""

    def __init__(self, json_schema: str | None, avro: str | None, *, is_framed: bool) -> None:
        self.json = json_schema
        self.avro = avro
        self.is_framed = is_framed
        """Whether each Avro value names the schema that it was written by."""


def _given(args: argparse.Namespace) -> Given:
    return Given(
        _json_schema(args.json_schema) if args.json_schema else None,
        _text_of(args.avro_schema) if args.avro_schema else None,
        is_framed=args.schema_registry is not None,
    )


_KEPT_AS_JSON: Final = (StructType, ArrayType, MapType)


def _schema_in(described: Description) -> DataType | None:
    schema = described.schema
    if schema is None:
        return None
    return stored_schema(schema) if isinstance(schema, dict) else declared_schema(schema)


def _first(
    args: argparse.Namespace,
    wanted: Description,
    session: Any,
    source: Source,
    registry: Registry | None,
) -> Description:
    given = _given(args)
    if args.value == "json" and given.json is not None:
        schema = declared_schema(given.json)
        kept = schema.jsonValue() if isinstance(schema, _KEPT_AS_JSON) else given.json
        return replace(wanted, schema=kept)
    if args.value == "json":
        sample = source.sample(session, SAMPLE)
        if not sample:
            raise PipelineError("there is no value yet to infer a schema from; give --json-schema")
        return replace(wanted, schema=infer_json_schema(session, sample).jsonValue())
    if args.value == "avro":
        if given.avro is not None:
            return replace(wanted, avro_schema=given.avro)
        assert registry is not None
        return replace(wanted, avro_schema=_latest_schema(args, registry))
    return wanted


def _json_schema(text: str) -> str:
    if text.endswith((".json", ".ddl", ".txt")) or Path(text).is_file():
        return _text_of(Path(text))
    return text


def _text_of(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise PipelineError(f"cannot read {path}: {error.strerror}") from None


def _latest_schema(args: argparse.Namespace, registry: Registry) -> str:
    """Return the newest schema of the subjects `<topic>-value`, which must be the same."""
    if args.pattern:
        raise PipelineError("--schema-registry with --pattern needs --avro-schema for the column")
    found = {topic: registry.latest(f"{topic}-value") for topic in args.topic}
    missing = [topic for topic, schema in found.items() if schema is None]
    if missing:
        raise PipelineError(f"the schema registry has no subject {missing[0]}-value")
    schemas = set(found.values())
    if len(schemas) > 1:
        raise PipelineError("the topics' values have different schemas; give --avro-schema")
    return str(schemas.pop())
