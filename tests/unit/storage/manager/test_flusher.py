"""Flushes in the background, beside what the event loop does with the logs."""

from collections.abc import Callable

import pytest

from config.topic_config import TopicConfig
from protocol.types import TopicPartition
from storage import log_tasks
from storage.log.log import Log
from storage.log.results import FetchIsolation, FileSlice
from storage.waits import Work, at_once
from tests.support.beside import Moment, at_every_moment
from tests.support.calls import Calls
from tests.support.log_tasks import begin_task, run_task
from tests.support.managed_logs import Managed

TP = TopicPartition("t", 0)


class Broker(Managed):
    """Two directories; one partition, with segments that wait for their sync, in the first."""

    def __init__(self) -> None:
        super().__init__(config=TopicConfig())
        self.source = self.made("t")

    def made(self, topic: str) -> Log:
        log = self.log(topic)
        for _ in range(3):
            self.append(log, value=b"v" * 50)
            log.roll()  # on request: the copy of a moved log has but one segment
        return log

    def move(self) -> None:
        """All of it, as the mover does it step by step."""
        manager, source = self.manager, self.source
        future = manager.moves.create_future_log(TP, "/b")
        while future.log_end_offset < source.log_end_offset:
            found = source.read(future.log_end_offset, 1 << 20, FetchIsolation.LOG_END).records
            assert isinstance(found, FileSlice)
            future.appender.append_as_follower(found.read())
        at_once(future.flush())
        manager.moves.retire_source(TP)
        manager.moves.promote_future(TP)

    def delete(self) -> None:
        self.manager.async_delete(TP)

    def fail(self) -> None:
        self.manager.report_failure("/a", OSError(5, "gone"))

    def flush_rolled(self) -> Work[int | None]:
        return begin_task(self.manager, log_tasks.FLUSH_ROLLED)


@pytest.mark.parametrize("interloper", [Broker.move, Broker.delete, Broker.fail])
def test_a_log_that_goes_away_does_not_disturb_the_flush_of_rolled_segments(
    interloper: Callable[[Broker], None],
) -> None:
    def scenario(moment: Moment) -> None:
        broker = Broker()
        other = broker.made("u")
        moment.perform(broker.flush_rolled(), lambda: interloper(broker))
        assert len(broker.offline) == (moment.came and interloper is Broker.fail)
        assert other.recovery_point == other.segments.active.base_offset
        if moment.came:
            assert (broker.manager.get_log(TP) is None) == (interloper is not Broker.move)
        run_task(broker.manager, log_tasks.FLUSH_ROLLED)
        for log in broker.manager.all_logs():
            at_once(log.flush())
            assert log.recovery_point == log.log_end_offset

    assert at_every_moment(scenario, step=7) > 20


@pytest.mark.parametrize("interloper", [Broker.move, Broker.delete])
def test_the_queue_may_be_emptied_between_two_flushes(
    interloper: Callable[[Broker], None],
) -> None:
    broker = Broker()
    flushes = Calls(broker.flush_rolled())
    interloper(broker)
    flushes.finish()
    assert broker.manager._flusher.rolled == 0
    assert broker.offline == []
