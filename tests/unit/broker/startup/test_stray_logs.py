"""A start logs stray logs, by topic."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from broker.cluster.image import MetadataImage, TopicImage
from broker.startup.stray_logs import warn_of_stray_logs
from protocol.types import TopicPartition
from tests.support.broker_bench import led


def logs_of(*partitions: tuple[str, int]) -> Any:
    logs = [SimpleNamespace(topic_partition=TopicPartition(*one)) for one in partitions]
    return SimpleNamespace(all_logs=lambda: logs)


def test_topics_and_partitions_that_the_metadata_does_not_know_are_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    image = MetadataImage()
    image.set_topic(TopicImage(name="known", topic_id=b"k" * 16, partitions={0: led()}))
    image.set_topic(TopicImage(name="smaller", topic_id=b"s" * 16, partitions={0: led()}))
    with caplog.at_level(logging.WARNING):
        warn_of_stray_logs(logs_of(("known", 0), ("smaller", 0)), image)
        assert not caplog.messages
        warn_of_stray_logs(logs_of(("z", 0), ("known", 0), ("smaller", 1), ("a", 3)), image)
    (message,) = caplog.messages
    assert ": a, smaller, z. They" in message
