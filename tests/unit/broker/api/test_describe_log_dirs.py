from types import SimpleNamespace
from typing import Any

import pytest

from broker.api.describe_log_dirs import API, DescribeLogDirsHandler
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from protocol.types import TopicPartition
from tests.support.api_calls import call

KEY = ApiKey.DESCRIBE_LOG_DIRS


def log(index: int, name: str, directory: str, size: int) -> Any:
    return SimpleNamespace(
        topic_partition=TopicPartition(name, index),
        dir=f"{directory}/{name}-{index}",
        size=size,
        high_watermark=5,
        log_end_offset=5,
    )


class FakeDirectories:
    live_dirs = ("/a", "/b")
    offline_dirs = ("/c",)
    cordoned_dirs = frozenset({"/b", "/c"})

    def all_logs(self) -> list[Any]:
        return [log(1, "t", "/a", 20), log(0, "t", "/a", 10), log(0, "u", "/b", 30)]

    def future_logs(self) -> list[Any]:
        return []

    def get_log(self, topic_partition: TopicPartition) -> None:
        return None


class FakeVolumes:
    def usage(self, path: str) -> tuple[int, int]:
        if path == "/b":
            raise OSError(5, "gone")
        return 1000, 400


HANDLER = DescribeLogDirsHandler(FakeDirectories(), FakeVolumes())


@pytest.mark.parametrize("version", range(API.versions[1] + 1))
def test_directories_partitions_and_sizes(version: int) -> None:
    response = call(HANDLER, KEY, version, DescribeLogDirsRequest(topics=None))
    found = {
        result.log_dir: {
            (topic.name, partition.partition_index): partition.partition_size
            for topic in result.topics
            for partition in topic.partitions
        }
        for result in response.results
    }
    assert found == {"/a": {("t", 0): 10, ("t", 1): 20}, "/b": {("u", 0): 30}, "/c": {}}
    codes = [result.error_code for result in response.results]
    assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR]
    if version >= 4:
        sizes = [(result.total_bytes, result.usable_bytes) for result in response.results]
        assert sizes == [(1000, 400), (-1, -1), (-1, -1)]
    if version >= 5:  # of one that failed Kafka says nothing
        assert [result.is_cordoned for result in response.results] == [False, True, False]


def test_only_the_partitions_that_were_asked_for() -> None:
    request = DescribeLogDirsRequest(
        topics=[
            DescribableLogDirTopic(topic="t", partitions=[1, 5]),
            DescribableLogDirTopic(topic="missing", partitions=[0]),
        ]
    )
    response = call(HANDLER, KEY, 4, request)
    (topic,) = response.results[0].topics
    assert [p.partition_index for p in topic.partitions] == [1]
    assert list(response.results[1].topics) == []
