"""Apache Kafka's own classes read each field that we write, and write the same bytes.

Kafka 4.3 judges every version that it has, Kafka 3.9 those that Kafka 4 dropped. No message and no
version is known to us alone.
"""

import base64
import json
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from protocol.messages import coordinator_records as records
from protocol.schema import Api
from protocol.schema.constructs import ArrayOf, Blob, Fields
from protocol.types import uuid_to_text
from tests.property.test_codecs_against_kio import FIRST_VERSIONS, members
from tests.support.kafka_jars import KAFKA_VERSION, java
from tests.support.message_values import all_codecs, codec_id, random_value

pytestmark = pytest.mark.conformance

ORACLE = Path(__file__).with_name("CodecOracle.java")
OLD_KAFKA = "3.9.0"
ROUNDS = 8
GROUP_RECORDS = "org.apache.kafka.coordinator.group.generated."
TXN_RECORDS = "org.apache.kafka.coordinator.transaction.generated."
PACKAGES = {
    records.OffsetCommitKey.name: GROUP_RECORDS,
    records.OffsetCommitValue.name: GROUP_RECORDS,
    records.GroupMetadataKey.name: GROUP_RECORDS,
    records.GroupMetadataValue.name: GROUP_RECORDS,
    records.TransactionLogKey.name: TXN_RECORDS,
    records.TransactionLogValue.name: TXN_RECORDS,
}


class Case(NamedTuple):
    """A message for Kafka to judge."""

    api: Api
    version: int
    value: Any
    data: bytes


def kafka_for(api: Api, version: int) -> str:
    """Return the Kafka release that knows this version."""
    message = api.name.removesuffix("Request").removesuffix("Response")
    return OLD_KAFKA if version < FIRST_VERSIONS.get(message, 0) else KAFKA_VERSION


def question(case: Case) -> str:
    """Return the oracle's line for a case. A record key's version is its kind, not its layout."""
    package = PACKAGES.get(case.api.name, "org.apache.kafka.common.message.")
    suffix = "" if case.api.key is None else "Data"
    version = 0 if case.api.name.endswith("Key") else case.version
    return f"{package}{case.api.name}{suffix} {version} {case.data.hex()}"


@cache
def cases() -> list[Case]:
    found = []
    for api, version in all_codecs():
        codec, rng = api.codec(version), Random(f"{api.name} {version}")
        for _ in range(ROUNDS):
            value = random_value(codec.node, rng)
            found.append(Case(api, version, value, codec.build(value)))
    return found


@cache
def answers() -> dict[tuple[str, int], list[tuple[Case, str]]]:
    """Kafka's answers by message and version, from one Java process for each release."""
    found: dict[tuple[str, int], list[tuple[Case, str]]] = {}
    for release in (KAFKA_VERSION, OLD_KAFKA):
        asked = [case for case in cases() if kafka_for(case.api, case.version) == release]
        questions = "\n".join(question(case) for case in asked)
        result = java(str(ORACLE), version=release, stdin=questions, timeout=300)
        for case, answer in zip(asked, result.stdout.splitlines(), strict=True):
            found.setdefault((case.api.name, case.version), []).append((case, answer))
    return found


def camel(name: str) -> str:
    """Return a name as Kafka's JSON spells it; `v3_and_below` counts as one word."""
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def expected_json(node: Any, value: Any) -> Any:
    """Return what Kafka's JSON converter should make of our value."""
    if value is None:
        return None
    if isinstance(node, Fields):
        return expected_fields(node, value)
    if isinstance(node, ArrayOf):
        return [expected_json(node.element, element) for element in value]
    if node.code == "16s":
        return uuid_to_text(value)
    if isinstance(node, Blob):
        return base64.b64encode(value).decode()
    return value


def expected_fields(node: Fields, value: Any) -> Any:
    defaults = {field.name: field for field in node.tagged}
    out = {}
    for name, member in members(node):
        content = getattr(value, name)
        if name in defaults and defaults[name].is_default(content):
            continue
        if name == "records" and content is not None:
            out["recordsSizeInBytes"] = len(content)
        else:
            out[camel(name)] = expected_json(member, content)
    return out


@pytest.mark.parametrize(("api", "version"), list(all_codecs()), ids=codec_id)
def test_kafka_reads_and_writes_the_same(api: Api, version: int) -> None:
    for case, answer in answers()[api.name, version]:
        data, _, text = answer.partition(" ")
        assert data != "error", text
        assert data == case.data.hex()
        assert json.loads(text) == expected_json(api.codec(version).node, case.value)
