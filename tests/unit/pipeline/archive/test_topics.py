"""The file in which an archive keeps the properties of its topics."""

import json
from dataclasses import asdict

import pytest

from pipeline.archive.topics import Topic, kept, parsed
from pipeline.errors import PipelineError

SET, BROKER, DEFAULT = "DYNAMIC_TOPIC_CONFIG", "STATIC_BROKER_CONFIG", "DEFAULT_CONFIG"


def test_configs_that_were_set_and_those_that_decide_which_records_there_are() -> None:
    assert kept(
        {
            "segment.ms": ("5", SET),
            "retention.ms": ("604800000", DEFAULT),
            "retention.bytes": ("1000", BROKER),
            "max.message.bytes": ("5000000", BROKER),
            "message.timestamp.after.max.ms": ("3600000", DEFAULT),
            "message.timestamp.before.max.ms": ("86400000", SET),
            "message.timestamp.type": ("CreateTime", DEFAULT),
            "cleanup.policy": ("compact", BROKER),
        }
    ) == {
        "cleanup.policy": "compact",
        "max.message.bytes": "5000000",
        "message.timestamp.after.max.ms": "3600000",
        "message.timestamp.before.max.ms": "86400000",
        "message.timestamp.type": "CreateTime",
        "segment.ms": "5",
    }


def test_the_file_is_read_as_it_was_written() -> None:
    topics = {"a": Topic(6, {"segment.ms": "5"}), "b": Topic(1, {})}
    text = json.dumps({name: asdict(topic) for name, topic in topics.items()})
    assert parsed(text, "topics.json") == topics


@pytest.mark.parametrize("text", ["", "[]", '{"a": 6}', '{"a": {"parts": 6}}', '{"a": {}}'])
def test_a_file_that_makes_no_sense_is_named_with_what_to_do(text: str) -> None:
    with pytest.raises(PipelineError, match=r"topics\.json does not describe topics.*anew"):
        parsed(text, "/lake/topics.json")
