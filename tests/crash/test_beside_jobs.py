"""The event loop changes a log while a job of the log is in a thread; neither harms the other.

A flush is interrupted before each of its lines by everything that may happen to a log. Afterwards
the machine loses power: all below the recovery point is there. Then all is flushed, and power
is lost again: now everything has to be there, so no mark was lost either.
"""

from collections.abc import Callable
from random import Random

import pytest

from config.topic_config import TopicConfig
from tests.support.beside import Moment, at_every_moment
from tests.support.calls import Calls
from tests.support.crash_lab import TP, Workload, verify
from tests.support.recording_filesystem import PowerLoss

CONFIG = TopicConfig(
    segment_bytes=500, index_interval_bytes=0, segment_index_bytes=480, file_delete_delay_ms=0
)

Interloper = Callable[[Workload], object]


def only_appended_to() -> Workload:
    """Several segments, flushed; then one more batch, without a roll: there is no mark."""
    work = Workload(Random(5), config=CONFIG)
    work.begin()
    while len(work.log.segments) < 2 or not work.log.durability.names_are_synced:
        work.flush()
        work.append()
    return work


def changed_in_every_way() -> Workload:
    """The same log with a new leader epoch and another segment."""
    work = only_appended_to()
    work.epoch += 1
    work.append()
    work.roll()
    work.append()
    return work


WORKLOADS = {"appended to": only_appended_to, "changed": changed_in_every_way}


def truncate_and_append(work: Workload) -> None:
    """Truncate below the bytes that are being synced, and append beyond them again."""
    end = work.log.log_end_offset
    work.truncate_at(work.truth.line[-2].base)
    while work.log.log_end_offset <= end:
        work.append()


def start_over_and_append(work: Workload) -> None:
    work.start_over_at(work.log.log_end_offset + 1)
    work.append()


def delete_and_append(work: Workload) -> None:
    work.delete_up_to(work.log.log_end_offset)
    work.retention()
    work.append()


def roll_and_append(work: Workload) -> None:
    work.roll()
    work.append()


def flush_and_append(work: Workload) -> None:
    work.append()
    work.flush()
    work.append()


def roll_and_flush_rolled(work: Workload) -> None:
    work.roll()
    work.flush_rolled()
    work.append()


def move_away_and_back(work: Workload) -> None:
    """A move that fails at the last moment."""

    def go() -> None:
        work.manager.moves.retire_source(TP)
        work.manager.moves.restore_source(TP)

    work.append()
    work._plain("move away and back", go)


INTERLOPERS: dict[str, Interloper] = {
    "append": Workload.append,
    "roll and append": roll_and_append,
    "truncate": lambda work: work.truncate_at(work.truth.line[-1].base),
    "truncate and append": truncate_and_append,
    "start over and append": start_over_and_append,
    "delete and append": delete_and_append,
    "flush and append": flush_and_append,
    "roll and flush": roll_and_flush_rolled,
    "checkpoint": Workload.checkpoint,
    "move away and back": move_away_and_back,
}


def lose_power(work: Workload) -> None:
    """Cut the power: the synced contents are there, or these under all names, or everything."""
    loss = PowerLoss(work.fs)
    for state in (loss.lost(loss.last), loss.names(loss.last), loss.kept(loss.last)):
        verify(state, work.expectation(loss.last), work.config, work.clock)


def interrupt_flush(make: Callable[[], Workload], interloper: Interloper, moment: Moment) -> None:
    work = make()

    def flush() -> None:
        moment.perform(work.log.flush(), lambda: interloper(work))

    work._plain("interrupted flush", flush)
    work.log._check()
    lose_power(work)
    work.flush()
    assert work.log.recovery_point == work.log.log_end_offset
    assert work.log.durability.names_are_synced
    assert Calls(work.log.flush()).done
    lose_power(work)


def interrupt_every_flush(workload: str, name: str, step: int) -> None:
    make, interloper = WORKLOADS[workload], INTERLOPERS[name]
    lines = at_every_moment(lambda moment: interrupt_flush(make, interloper, moment), step=step)
    assert lines > 20


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("name", INTERLOPERS)
def test_s_fl_2_a_flush_is_interrupted(name: str, workload: str) -> None:
    interrupt_every_flush(workload, name, 17)


@pytest.mark.crash
@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("name", INTERLOPERS)
def test_s_fl_2_a_flush_is_interrupted_before_each_of_its_lines(name: str, workload: str) -> None:
    interrupt_every_flush(workload, name, 1)
