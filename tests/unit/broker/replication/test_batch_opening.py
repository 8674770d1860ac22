"""Batches that are more than a look: opened beside their partition, in nobody's way."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing

from broker.replication.batch_opening import BatchOpener, OpeningStatistics
from broker.request import reply_of
from broker.world.driver import Driver
from broker.world.workers import InlineWorkers, WorkerDied
from protocol.errors import ErrorCode
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.records.message_set import build_message_set
from storage.waits import Work
from tests.support.broker_bench import NOW, context
from tests.support.heavy_batches import odd_sizes
from tests.support.real_bench import RealBench, produced


class Hands(InlineWorkers):
    """Child processes that work once `may_work` is set."""

    def __init__(self) -> None:
        self.may_work = trio.Event()
        self.threads = self.begun = self.most = self.at_it = 0
        self.die = False

    async def in_thread(
        self, work: Callable[..., Any], *values: Any, limiter: trio.CapacityLimiter | None = None
    ) -> Any:
        self.threads += 1
        return await super().in_thread(work, *values, limiter=limiter)

    async def in_process(self, work: Callable[..., Any], *values: Any) -> Any:
        self.begun += 1
        self.at_it += 1
        self.most = max(self.most, self.at_it)
        await self.may_work.wait()
        self.at_it -= 1
        if self.die:
            raise WorkerDied("killed")
        return await super().in_process(work, *values)


HEAVY = odd_sizes(40_000, NOW)
MEDIUM = odd_sizes(3_000, NOW)
SMALL = build_batch([(NOW, None, b"v", ())])


class Asked:
    """A request in work."""

    def __init__(self, version: int) -> None:
        self._version = version
        self._ended = trio.Event()
        self._scope = trio.CancelScope()
        self._reply: Any = None

    async def run(self, driver: Driver, work: Work[Any]) -> None:
        with self._scope:
            self._reply = await driver.run(reply_of(work))
            self._ended.set()

    @property
    def done(self) -> bool:
        return self._ended.is_set()

    def leave(self) -> None:
        """The client goes away."""
        self._scope.cancel()

    async def answer(self) -> Any:
        with trio.fail_after(60):
            await self._ended.wait()
        return produced(self._reply, self._version)


class Broker(RealBench):
    """`t` with two partitions, and the opener at work."""

    nursery: trio.Nursery

    def __init__(self) -> None:
        super().__init__()
        self.hands = Hands()
        self.opener = self.replicas.opener = BatchOpener()
        self.driver = Driver(self.hands, self.clock)
        self.partitions = self.topic(partitions=2)
        for partition in self.partitions:
            partition.opener = self.opener

    def run(self, test: Callable[[], Awaitable[None]]) -> None:
        """Run a test; its requests end with it."""

        async def main() -> None:
            async with trio.open_nursery() as self.nursery:
                await test()
                self.nursery.cancel_scope.cancel()

        trio.run(main)

    async def ask(self, records: bytes, version: int = 9, *, index: int = 0) -> Asked:
        data = PartitionProduceData(index=index, records=records)
        return await self.begin([data], version)

    async def begin(self, data: list[PartitionProduceData], version: int = 9) -> Asked:
        """Begin a request with acks=1, and run it until it waits or ends."""
        message = ProduceRequest(
            acks=1, timeout_ms=0, topic_data=[TopicProduceData(name="t", partition_data=data)]
        )
        codec = ProduceRequest.codec(version)
        request = codec.parse(bytearray(codec.build(message)))
        asked = Asked(version)
        work = self.produce_handler(context(version), request)
        self.nursery.start_soon(asked.run, self.driver, work)
        await trio.testing.wait_all_tasks_blocked(0.01)
        return asked


def counted(in_threads: int = 0, in_processes: int = 0, too_much: int = 0) -> OpeningStatistics:
    return OpeningStatistics(
        in_threads=in_threads, in_processes=in_processes, too_much=too_much, waiting=0
    )


@pytest.fixture
def broker() -> Broker:
    return Broker()


async def test_a_thread_is_enough_for_honest_batches(broker: Broker) -> None:
    reply = await (await broker.ask(MEDIUM)).answer()
    assert (reply.error_code, reply.base_offset) == (0, 0)
    assert (broker.hands.threads, broker.hands.begun) == (1, 0)
    reply = await (await broker.ask(SMALL)).answer()
    assert (reply.base_offset, broker.hands.threads) == (3_000, 1)
    assert broker.opener.statistics() == counted(in_threads=1)


async def test_a_heavy_batch_holds_up_nobody(broker: Broker) -> None:
    pending = await broker.ask(HEAVY)
    assert not pending.done
    # Another partition, and its own: the batch has no place in the log yet.
    for index in (0, 1):
        assert broker.produce(SMALL, index=index).base_offset == 0
    assert broker.partitions[0].appending == 0
    broker.hands.may_work.set()
    reply = await pending.answer()
    assert (reply.error_code, reply.base_offset) == (0, 1)
    assert broker.partitions[0].log.log_end_offset == 40_001
    assert broker.opener.statistics() == counted(in_processes=1)


async def test_heavy_batches_are_opened_one_after_the_other(broker: Broker) -> None:
    waiting = [await broker.ask(HEAVY, index=at % 2) for at in range(4)]
    await trio.testing.wait_all_tasks_blocked()
    assert (broker.hands.begun, broker.opener.statistics().waiting) == (1, 4)
    # A batch that a thread can open does not wait for them.
    assert (await (await broker.ask(MEDIUM)).answer()).base_offset == 0
    waiting[1].leave()
    await trio.testing.wait_all_tasks_blocked()
    assert broker.opener.statistics().waiting == 3
    broker.hands.may_work.set()
    for at in (0, 2, 3):
        assert (await waiting[at].answer()).error_code == 0
    assert broker.hands.most == 1
    assert broker.partitions[1].log.log_end_offset == 40_000


async def test_what_is_wrong_is_told_by_the_child(broker: Broker) -> None:
    broker.hands.may_work.set()
    data = bytearray(HEAVY)
    data[-1] ^= 1
    reply = await (await broker.ask(bytes(data))).answer()
    assert reply.error_code == ErrorCode.CORRUPT_MESSAGE
    assert broker.partitions[0].log.log_end_offset == 0
    assert broker.opener.statistics() == counted()


async def test_a_batch_that_no_child_could_open_is_answered_so_that_producers_try_again(
    broker: Broker,
) -> None:
    broker.hands.may_work.set()
    broker.hands.die = True
    pending = await broker.ask(HEAVY)
    reply = await pending.answer()
    assert reply.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert ErrorCode(reply.error_code).retriable
    broker.hands.die = False
    pending = await broker.ask(HEAVY)
    reply = await pending.answer()
    assert (reply.error_code, reply.base_offset) == (ErrorCode.NONE, 0)


async def test_there_is_an_end_to_patience(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.replication.batch_opening.PROCESS_STEPS", 30_000)
    broker.hands.may_work.set()
    pending = await broker.ask(HEAVY)
    reply = await pending.answer()
    assert reply.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert broker.opener.statistics() == counted(too_much=1)


async def test_old_messages_go_the_same_way(broker: Broker) -> None:
    many = build_message_set([(0, NOW, None, b"v")] * 5_000, magic=1, codec=CompressionType.GZIP)
    broker.hands.may_work.set()
    pending = await broker.ask(many, 2)
    assert (await pending.answer()).error_code == 0
    assert (broker.hands.begun, broker.partitions[0].log.log_end_offset) == (1, 5_000)


async def test_a_stop_drops_what_has_not_begun_to_append(broker: Broker) -> None:
    pending = await broker.ask(HEAVY)
    await trio.testing.wait_all_tasks_blocked()
    broker.nursery.cancel_scope.cancel()
    with trio.CancelScope(shield=True):
        await trio.testing.wait_all_tasks_blocked()
    assert not pending.done
    assert broker.partitions[0].log.log_end_offset == 0


async def test_what_was_appended_wakes_others_also_when_the_client_goes(broker: Broker) -> None:
    woken: list[Any] = []
    broker.produce_handler._wake = woken.append
    data = [PartitionProduceData(index=1, records=MEDIUM)]
    data.append(PartitionProduceData(index=0, records=HEAVY))
    work = await broker.begin(data)
    assert (broker.partitions[1].log.log_end_offset, woken) == (3_000, [])
    work.leave()
    broker.hands.may_work.set()
    await trio.testing.wait_all_tasks_blocked()
    assert woken == [broker.partitions[1]]


async def test_a_partition_gone_meanwhile_is_not_appended_to(broker: Broker) -> None:
    pending = await broker.ask(HEAVY)
    await trio.testing.wait_all_tasks_blocked()
    broker.partitions[0].close(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    broker.hands.may_work.set()
    reply = await pending.answer()
    assert reply.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
