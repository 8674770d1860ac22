"""docs/configuration.md says which keys have an effect: that must be true."""

import re
from pathlib import Path

from config.broker_keys import BROKER_KEYS
from config.definition import ConfigKey
from config.topic_keys import TOPIC_KEYS

ROOT = Path(__file__).parents[3]
ENGINE = "\n".join(
    path.read_text() for room in ("broker", "storage") for path in (ROOT / room).rglob("*.py")
)
RESOLUTION = "".join(
    (ROOT / "config" / name).read_text() for name in ("resolution.py", "sasl_settings.py")
)
BEHIND_TOPICS = {name for key in TOPIC_KEYS if key.effective for name in key.synonyms}


def is_read(key: ConfigKey) -> bool:
    by_attribute = re.search(rf"\.{key.attribute}\b", ENGINE) is not None
    return by_attribute or f'"{key.name}"' in ENGINE


def test_a_broker_key_that_is_said_to_have_an_effect_is_read() -> None:
    unread = [
        key.name
        for key in BROKER_KEYS
        if key.effective
        and key.name not in BEHIND_TOPICS
        and f'"{key.name}"' not in RESOLUTION
        and not is_read(key)
    ]
    assert unread == []


def test_a_topic_config_that_is_said_to_have_an_effect_is_read() -> None:
    unread = [key.name for key in TOPIC_KEYS if key.effective and not is_read(key)]
    assert unread == ["message.timestamp.difference.max.ms"]  # TopicConfig resolves it.


def test_a_key_that_is_said_to_have_none_is_not_read() -> None:
    read = [
        key.name
        for key in BROKER_KEYS
        if not key.effective and re.search(rf"onfig\.{key.attribute}\b", ENGINE)
    ]
    assert read == []
