"""kio, an independent implementation, reads and writes what we do, byte for byte.

For every version that kio knows: a random message of kio's is written by kio, parsed by us,
compared field by field and name by name, built by us into the same bytes, and those are read back
by kio.
"""

import dataclasses
import io
import re
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import import_module
from random import Random
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_reader, entity_writer

from protocol.schema import Api
from protocol.schema.constructs import ArrayOf, Fields
from tests.support.message_values import (
    COUNTS,
    SIZES,
    TEXTS,
    all_codecs,
    codec_id,
    random_fixed,
)

CODES = {
    **{"int8": "b", "int16": "h", "int32": "i", "int64": "q"},
    **{"uint16": "H", "float64": "d", "bool": "?"},
}
ROUNDS = 4
FIRST_VERSIONS = {
    "Produce": 3,
    "Fetch": 4,
    "ListOffsets": 1,
    "OffsetCommit": 2,
    "OffsetFetch": 1,
    "CreateTopics": 2,
    "DeleteTopics": 1,
    "OffsetForLeaderEpoch": 2,
    "WriteTxnMarkers": 1,
    "DescribeConfigs": 1,
    "DescribeLogDirs": 1,
    "AlterReplicaLogDirs": 1,
    "AlterPartition": 2,
    "LeaderAndIsr": 8,
    "StopReplica": 5,
    "UpdateMetadata": 9,
    "ControlledShutdown": 4,
}
"""The first version that kio knows, if it is not 0: Kafka 4 dropped the versions before it, and
every version of the last four. The tests with Kafka's own classes cover these."""
NEWER = {"ApiVersions": 5, "DeleteGroups": 3, "TxnOffsetCommit": 6}
"""Versions of Kafka 4.4: tests/conformance/test_codecs_against_kafka.py compares them."""
RECORDS = ("OffsetCommitKey", "GroupMetadataKey", "TransactionLogKey")
"""Records of the coordinators, and their values: unknown to kio, covered by Kafka's own classes."""


def kio_class(api: Api, version: int) -> type | None:
    """kio's class for the message, None where it has none."""
    stem = api.name.removesuffix("Request").removesuffix("Response")
    package = re.sub("(?<=[a-z])(?=[A-Z])", "_", stem).lower()
    part = api.name.removeprefix(stem).lower() or "data"
    try:
        module = import_module(f"kio.schema.{package}.v{version}.{part}")
    except ModuleNotFoundError:
        return None
    found: type = getattr(module, api.name)
    return found


KNOWN = [(api, version) for api, version in all_codecs() if kio_class(api, version)]


@cache
def hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def members(node: Fields) -> list[tuple[str, Any]]:
    """The version's fields, tagged ones too, in the order of declaration."""
    nodes = {**dict(node.fields), **{field.name: field.node for field in node.tagged}}
    return [(name, nodes[name]) for name in node.cls._defaults if name in nodes]


def random_kio(cls: type, rng: Random) -> Any:
    """An instance of a kio class; tagged fields stay at their defaults half of the time."""
    contents = {}
    for field in dataclasses.fields(cls):
        if "tag" in field.metadata and rng.random() < 0.5:
            continue
        kind = field.metadata.get("kafka_type")
        contents[field.name] = random_content(hints(cls)[field.name], kind, rng)
    return cls(**contents)


def random_content(hint: Any, kind: str | None, rng: Random) -> Any:
    options = get_args(hint)
    if NoneType in options:
        if rng.random() < 0.3:
            return None
        (hint,) = (option for option in options if option is not NoneType)
    if get_origin(hint) is tuple:
        element = get_args(hint)[0]
        return tuple(random_content(element, kind, rng) for _ in range(rng.choice(COUNTS)))
    return random_kio(hint, rng) if kind is None else random_primitive(kind, rng)


def random_primitive(kind: str, rng: Random) -> Any:
    if kind in CODES:
        return random_fixed(CODES[kind], rng)
    if kind == "string":
        return rng.choice(TEXTS)
    if kind in ("bytes", "records"):
        return b"r" * rng.choice(SIZES)
    if kind == "uuid":
        return UUID(int=rng.getrandbits(128) | 1)
    if kind == "error_code":
        return rng.choice(list(KioErrorCode))
    if kind in ("timedelta_i32", "timedelta_i64"):
        return timedelta(milliseconds=rng.randrange(-1, 1 << 31))
    assert kind == "datetime_i64"
    return datetime.fromtimestamp(rng.randrange(1 << 31), UTC)


def plain(value: Any) -> Any:
    """A primitive of kio's as the number, text or bytes that stands for it on the wire."""
    if isinstance(value, timedelta):
        return round(value.total_seconds() * 1000)
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, UUID):
        return value.bytes
    return value.value if isinstance(value, KioErrorCode) else value


def assert_same(node: Any, ours: Any, theirs: Any) -> None:
    """Our parsed value and kio's instance say the same."""
    if isinstance(node, Fields) and theirs is None:
        assert ours is None
    elif isinstance(node, Fields):
        fields = dataclasses.fields(theirs)
        assert len(fields) == len(members(node))
        for (name, member), field in zip(members(node), fields, strict=True):
            assert name.startswith(field.name), "fields in another order, or misnamed"
            assert_same(member, getattr(ours, name), getattr(theirs, field.name))
    elif isinstance(node, ArrayOf) and theirs is not None:
        assert len(ours) == len(theirs)
        for our_element, their_element in zip(ours, theirs, strict=True):
            assert_same(node.element, our_element, their_element)
    elif node.code == "16s" and theirs is None:
        assert ours == bytes(16)
    elif isinstance(theirs, datetime | timedelta) or theirs is not None:
        assert ours == plain(theirs)
    else:
        assert ours is None or ours == -1  # kio has None for the time -1


@pytest.mark.parametrize(("api", "version"), KNOWN, ids=codec_id)
def test_kio_and_we_read_and_write_the_same_bytes(api: Api, version: int) -> None:
    cls = kio_class(api, version)
    assert cls is not None
    codec, rng = api.codec(version), Random(f"{api.name} {version}")
    for _ in range(ROUNDS):
        theirs = random_kio(cls, rng)
        stream = io.BytesIO()
        entity_writer(cls)(stream, theirs)
        data = stream.getvalue()
        ours = codec.parse(data)
        assert_same(codec.node, ours, theirs)
        built = codec.build(ours)
        assert built == data
        assert entity_reader(cls)(built, 0) == (theirs, len(built))


def test_kio_knows_all_but_dropped_versions_and_coordinator_records() -> None:
    missing = {
        (api.name, version) for api, version in all_codecs() if kio_class(api, version) is None
    }
    dropped = {
        (message + kind, version)
        for message, first in FIRST_VERSIONS.items()
        for kind in ("Request", "Response")
        for version in range(first)
    }
    newer = {
        (message + kind, version)
        for message, version in NEWER.items()
        for kind in ("Request", "Response")
    }
    records = {name for name, _ in missing - dropped - newer}
    assert dropped | newer <= missing
    assert records == {*RECORDS, *(name.replace("Key", "Value") for name in RECORDS)}
