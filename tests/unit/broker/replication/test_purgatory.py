"""Parked operations end once, in one of three ways, and leave nothing behind."""

import pytest

from broker.deadlines import Deadlines
from broker.replication.purgatory import DelayedOperation, Purgatory
from tests.support.manual_clock import ManualClock


class Waiting(DelayedOperation):
    def __init__(self):
        super().__init__()
        self.ready = False
        self.told = []
        self.over.wake = lambda: self.told.append(f"over: {self.over.value}")
        self.outcome = "ready"

    def is_complete(self, key=None):
        self.told.append(f"try {key}")
        return self.ready

    def on_expire(self):
        self.told.append("expire")
        self.outcome = "expired"


def make():
    clock = ManualClock()
    deadlines = Deadlines(clock)
    return clock, deadlines, Purgatory("test", deadlines)


def test_an_operation_completes_once_when_its_condition_holds():
    clock, deadlines, purgatory = make()
    operation = Waiting()
    purgatory.watch(operation, ["a", "b"], 5)
    assert purgatory.check("a") == 0
    operation.ready = True
    assert purgatory.check("b") == 1
    assert purgatory.check("a") == 0
    clock.advance(10)
    deadlines.run_due()
    assert operation.told == ["try a", "try b", "over: ready"]
    assert not operation.try_complete()
    assert operation.told[3:] == []


def test_an_operation_expires_and_then_completes():
    clock, deadlines, purgatory = make()
    operation = Waiting()
    purgatory.watch(operation, ["a"], 5)
    clock.advance(4.9)
    assert deadlines.run_due() == 0
    clock.advance(0.2)
    assert deadlines.run_due() == 1
    assert operation.told == ["expire", "over: expired"]
    assert purgatory.statistics().expired == 1


def test_an_abandoned_operation_leaves_no_watcher_and_no_timer():
    clock, deadlines, purgatory = make()
    operation = Waiting()
    purgatory.watch(operation, ["a", "b"], 5)
    operation.abandon()
    operation.abandon()
    clock.advance(10)
    assert deadlines.run_due() == 0
    statistics = purgatory.statistics()
    assert (statistics.parked, statistics.watched_keys, statistics.watchers) == (0, 0, 0)
    assert statistics.abandoned == 1
    assert operation.told == []
    assert deadlines.statistics().active == 0


def test_nothing_is_left_after_many_operations_ended_in_every_way():
    clock, deadlines, purgatory = make()
    operations = [Waiting() for _ in range(300)]
    for number, operation in enumerate(operations):
        purgatory.watch(operation, [number % 7, number % 5, "all"], 1 + number % 3)
    assert purgatory.statistics().parked == 300
    for operation in operations[:100]:
        operation.ready = True
    purgatory.check("all")
    for operation in operations[100:200]:
        operation.abandon()
    clock.advance(5)
    deadlines.run_due()
    statistics = purgatory.statistics()
    assert (statistics.parked, statistics.watchers, statistics.watched_keys) == (0, 0, 0)
    assert (statistics.completed, statistics.abandoned, statistics.expired) == (100, 100, 100)
    assert all(operation.ended for operation in operations)


def test_a_completion_may_park_a_new_operation_under_the_same_key():
    _, _, purgatory = make()
    first, second = Waiting(), Waiting()
    first.over.wake = lambda: purgatory.watch(second, ["a"], 5)
    first.ready = True
    purgatory.watch(first, ["a"], 5)
    assert purgatory.check("a") == 1
    assert second.told == []
    assert purgatory.statistics().watched_keys == 1


def test_one_completion_may_end_another_that_waits_for_the_same_key():
    _, _, purgatory = make()
    first, second = Waiting(), Waiting()
    first.over.wake = second.abandon
    first.ready = True
    purgatory.watch(first, ["a"], 5)
    purgatory.watch(second, ["a"], 5)
    assert purgatory.check("a") == 1
    assert second.told == []


def test_a_request_that_waits_is_not_checked_again_and_leaves_in_its_own_turn():
    clock, deadlines, purgatory = make()
    operation, other = Waiting(), Waiting()
    operation.ready = True
    request = purgatory.wait(operation, ["a", "b"], 5)
    request.send(None)
    purgatory.watch(other, ["a"], 5)
    assert (purgatory.check("a"), purgatory.check("a"), purgatory.check("b")) == (1, 0, 0)
    assert operation.told == ["try a", "over: ready"]
    assert other.told == ["try a", "try a"]
    statistics = purgatory.statistics()
    assert (statistics.parked, statistics.watchers, statistics.completed) == (1, 2, 1)
    assert deadlines.statistics().active == 2
    clock.advance(6)
    deadlines.run_due()
    with pytest.raises(StopIteration):
        request.send(None)
    assert operation.told == ["try a", "over: ready"]
    statistics = purgatory.statistics()
    assert (statistics.parked, statistics.watchers, statistics.watched_keys) == (0, 0, 0)
    assert (statistics.completed, statistics.expired, statistics.abandoned) == (1, 1, 0)


def test_a_request_whose_client_has_gone_is_abandoned():
    _, deadlines, purgatory = make()
    operation = Waiting()
    request = purgatory.wait(operation, ["a"], 5)
    request.send(None)
    request.close()
    assert purgatory.check("a") == 0
    assert operation.told == []
    assert purgatory.statistics().abandoned == 1
    assert deadlines.statistics().active == 0
