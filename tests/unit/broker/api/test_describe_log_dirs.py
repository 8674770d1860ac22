from dataclasses import dataclass, field

import pytest

from broker.api.describe_log_dirs import API, DescribeLogDirsHandler
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from protocol.types import TopicPartition
from tests.support.api_calls import call, context, over_the_wire

KEY = ApiKey.DESCRIBE_LOG_DIRS


@dataclass
class FakeLog:
    topic_partition: TopicPartition
    dir: str
    size: int
    high_watermark: int = 5
    log_end_offset: int = 5


@dataclass
class FakeDirectories:
    live_dirs: tuple[str, ...] = ("/a", "/b")
    offline_dirs: tuple[str, ...] = ("/c",)
    cordoned_dirs: frozenset[str] = frozenset({"/b", "/c"})
    logs: list[FakeLog] = field(
        default_factory=lambda: [
            FakeLog(TopicPartition("t", 1), "/a/t-1", 20),
            FakeLog(TopicPartition("t", 0), "/a/t-0", 10),
            FakeLog(TopicPartition("u", 0), "/b/u-0", 30),
        ]
    )

    def all_logs(self) -> list[FakeLog]:
        return self.logs

    def future_logs(self) -> list[FakeLog]:
        return []

    def get_log(self, topic_partition: TopicPartition) -> FakeLog | None:
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


def test_error_response_fits_every_version() -> None:
    for version in range(API.versions[1] + 1):
        request = DescribeLogDirsRequest(topics=None)
        reply = HANDLER.error_response(
            context(KEY, version), request, ErrorCode.UNKNOWN_SERVER_ERROR
        )
        parsed = over_the_wire(KEY, version, reply)
        assert version < 3 or parsed.error_code == -1
