"""Apache Kafka reads every form of compressed batch, and accepts those that the table says."""

from functools import cache
from pathlib import Path

import pytest

from tests.support.compressed_forms import FORMS, Form, batch_of, some_values
from tests.support.kafka_jars import java

pytestmark = pytest.mark.conformance

ORACLE = Path(__file__).with_name("DecompressionOracle.java")


@cache
def answers() -> dict[str, list[str]]:
    """Kafka's verdict on each form, a line for each of `some_values`."""
    asked = [(form.name, batch_of(form, values)) for form in FORMS for values in some_values()]
    batches = "\n".join(batch.hex() for _, batch in asked)
    result = java(str(ORACLE), stdin=batches, timeout=300)
    found: dict[str, list[str]] = {}
    for (name, _), line in zip(asked, result.stdout.splitlines(), strict=True):
        found.setdefault(name, []).append(line)
    return found


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_kafka_takes_and_refuses_what_the_table_says(form: Form) -> None:
    for values, answer in zip(some_values(), answers()[form.name], strict=True):
        assert (answer == f"ok {b''.join(values).hex()}") == form.is_taken, answer
