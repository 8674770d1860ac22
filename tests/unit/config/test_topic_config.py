import dataclasses

import pytest

from config.broker_config import BrokerConfig
from config.broker_keys import BROKER_KEYS
from config.definition import ConfigError
from config.topic_config import TopicConfig
from config.topic_keys import TOPIC_KEYS

DEFAULTS = BrokerConfig.parse({})


def test_without_anything_set_a_topic_has_kafkas_defaults() -> None:
    assert TopicConfig.from_broker(DEFAULTS, {}) == TopicConfig()
    assert TopicConfig().delete
    assert not TopicConfig().compact
    assert not TopicConfig().log_append_time


def test_fields_are_the_topic_keys_that_a_log_is_made_with() -> None:
    fields = {field.name for field in dataclasses.fields(TopicConfig)}
    attributes = {key.attribute: key for key in TOPIC_KEYS}
    assert fields <= set(attributes)
    effective = {name for name, key in attributes.items() if key.effective}
    assert effective - fields == {"message_timestamp_difference_max_ms"}
    without_effect = {name for name in fields if not attributes[name].effective}
    assert not without_effect


def test_every_synonym_is_a_broker_key_of_the_same_meaning() -> None:
    for key in TOPIC_KEYS:
        for name in key.synonyms:
            assert name in BROKER_KEYS
        if key.synonyms:
            assert BROKER_KEYS[key.synonyms[0]].type is key.type, key.name
            assert BROKER_KEYS[key.synonyms[0]].effective == key.effective, key.name


@pytest.mark.parametrize(
    "key", [key for key in TOPIC_KEYS if key.attribute in dir(TopicConfig()) and key.synonyms]
)
def test_s_cfg_2_the_broker_gives_what_the_topic_does_not_set(key) -> None:
    samples = {
        "cleanup.policy": ("compact", frozenset({"compact"})),
        "compression.type": ("zstd", "zstd"),
        "message.timestamp.type": ("LogAppendTime", "LogAppendTime"),
        "min.cleanable.dirty.ratio": ("0.25", 0.25),
        "compression.gzip.level": ("6", 6),
        "message.timestamp.difference.max.ms": None,
    }
    if key.type.name == "BOOLEAN":
        flipped = str(not key.default).lower()
        sample = (flipped, not key.default)
    else:
        sample = samples.get(key.name, ("16", 16))
    if sample is None:
        return
    text, value = sample
    broker = BrokerConfig.parse({key.synonyms[0]: text})
    assert getattr(TopicConfig.from_broker(broker, {}), key.attribute) == value
    assert getattr(TopicConfig.from_broker(DEFAULTS, {key.name: text}), key.attribute) == value
    back = {key.name: "delete" if key.name == "cleanup.policy" else str(key.default).lower()}
    if key.type.name in ("INT", "LONG", "BOOLEAN"):
        config = TopicConfig.from_broker(broker, back)
        assert getattr(config, key.attribute) == key.default


def test_s_cfg_4_unknown_names_and_bad_values() -> None:
    for values, reason in (
        ({"x": "1"}, r"^Unknown topic config name: x$"),
        ({"segment.bytes": "13"}, "Value must be at least 14"),
        ({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}, "conflict topic config"),
        ({"remote.storage.enable": "true"}, "Tiered Storage"),
        ({"leader.replication.throttled.replicas": "1"}, "literal"),
        ({"cleanup.policy": "shred"}, "shred"),
    ):
        with pytest.raises(ConfigError, match=reason):
            TopicConfig.from_broker(DEFAULTS, values)
    TopicConfig.from_broker(DEFAULTS, {"leader.replication.throttled.replicas": "0:1,1:2"})
    TopicConfig.from_broker(DEFAULTS, {"follower.replication.throttled.replicas": "*"})


def test_policies() -> None:
    twice = TopicConfig.from_broker(DEFAULTS, {"cleanup.policy": "delete,delete"})
    assert twice.cleanup_policy == frozenset({"delete"})
    both = TopicConfig.from_broker(DEFAULTS, {"cleanup.policy": "compact, delete"})
    assert both.compact
    assert both.delete


def test_the_old_timestamp_limit_of_a_topic() -> None:
    config = TopicConfig.from_broker(DEFAULTS, {"message.timestamp.difference.max.ms": "9"})
    assert config.message_timestamp_before_max_ms == 9
    assert config.message_timestamp_after_max_ms == 9
