from pathlib import Path

from config.broker_keys import BROKER_KEYS
from config.documentation import render
from config.topic_keys import TOPIC_KEYS


def test_docs_configuration_md_is_up_to_date() -> None:
    path = Path(__file__).parents[3] / "docs" / "configuration.md"
    assert path.read_text() == render(), "run scripts/generate-configuration-docs"


def test_every_key_is_explained() -> None:
    text = render()
    for key in (*BROKER_KEYS, *TOPIC_KEYS):
        assert key.doc.endswith("."), key.name
        assert f"`{key.name}`" in text


def test_own_keys_are_few_and_marked() -> None:
    assert [key.name for key in BROKER_KEYS if key.own] == [
        "incomplete.request.max.bytes",
        "ssl.handshake.max.ms",
        "metrics.http.listener",
        "sasl.authentication.timeout.ms",
        "max.unauthenticated.connections",
        "max.unauthenticated.connections.per.ip",
    ]
