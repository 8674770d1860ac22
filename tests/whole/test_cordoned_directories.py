"""cordoned.log.dirs (KIP-1066): such directories serve what they hold and get nothing new."""

import pytest

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from tests.support.broker_configs import BROKER, alter
from tests.support.topic_requests import creation
from tests.support.whole_broker import WholeBroker, whole_broker
from tests.whole.plain import fetched, produced


async def cordon(broker: WholeBroker, value: str, name: str = "1") -> tuple[int, str]:
    return await alter(broker, BROKER, name, {"cordoned.log.dirs": value})


async def created(broker: WholeBroker, name: str) -> int:
    request = creation(name, partitions=4)
    answer = await broker.client().call(ApiKey.CREATE_TOPICS, 5, request)
    return int(answer.topics[0].error_code)


def directories(broker: WholeBroker, name: str) -> set[str | None]:
    logs = broker.server.log_manager
    return {logs.dir_of(TopicPartition(name, index)) for index in range(4)}


@whole_broker(log__dirs="/a,/b", cordoned__log__dirs="/a")
async def test_a_cordoned_directory_gets_no_new_partitions(broker: WholeBroker) -> None:
    await broker.create_topic("first", 4)
    assert directories(broker, "first") == {"/b"}
    assert await cordon(broker, "/b") == (0, "")
    await broker.create_topic("second", 4)
    assert directories(broker, "second") == {"/a"}
    with pytest.raises(KafkaError) as caught:
        broker.server.components.log_mover.move(TopicPartition("second", 0), "/b")
    assert caught.value.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert await produced(broker.client(), "first-0", "served") == 0
    await broker.restart()
    assert await fetched(broker.client(), "first-0") == ["served"]
    await broker.create_topic("third", 4)
    assert directories(broker, "third") == {"/a"}
    assert await cordon(broker, "") == (0, "")
    await broker.create_topic("fourth", 4)
    assert "/b" in directories(broker, "fourth")


@whole_broker(log__dirs="/a,/b", cordoned__log__dirs="*")
async def test_no_partition_is_placed_while_all_directories_are_cordoned(
    broker: WholeBroker,
) -> None:
    assert await created(broker, "t") == ErrorCode.INVALID_REPLICATION_FACTOR
    assert await cordon(broker, "/a") == (0, "")
    assert await created(broker, "t") == ErrorCode.NONE
    assert directories(broker, "t") == {"/b"}


@whole_broker(log__dirs="/a,/b")
async def test_bad_values_are_refused_while_the_broker_runs(broker: WholeBroker) -> None:
    code, message = await cordon(broker, "/c")
    assert code == ErrorCode.INVALID_REQUEST
    assert "Missing entries : /c" in message
    code, message = await cordon(broker, "/a", name="")
    assert code == ErrorCode.INVALID_REQUEST
    assert "default cluster level" in message
