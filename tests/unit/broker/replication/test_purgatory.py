"""Parked operations end once, in one of three ways, and leave nothing behind."""

from broker.deadlines import Deadlines
from broker.replication.purgatory import DelayedOperation, Purgatory
from tests.support.manual_clock import ManualClock


class Waiting(DelayedOperation):
    def __init__(self):
        super().__init__()
        self.ready = False
        self.told = []

    def try_complete(self, key=None):
        self.told.append(f"try {key}")
        return self.force_complete() if self.ready else False

    def on_complete(self):
        self.told.append("complete")

    def on_expire(self):
        self.told.append("expire")


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
    assert operation.told == ["try a", "try b", "complete"]
    assert not operation.force_complete()


def test_an_operation_expires_and_then_completes():
    clock, deadlines, purgatory = make()
    operation = Waiting()
    purgatory.watch(operation, ["a"], 5)
    clock.advance(4.9)
    assert deadlines.run_due() == 0
    clock.advance(0.2)
    assert deadlines.run_due() == 1
    assert operation.told == ["expire", "complete"]
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
    second = Waiting()

    class Again(Waiting):
        def on_complete(self):
            purgatory.watch(second, ["a"], 5)

    first = Again()
    first.ready = True
    purgatory.watch(first, ["a"], 5)
    assert purgatory.check("a") == 1
    assert second.told == []
    assert purgatory.statistics().watched_keys == 1


def test_one_completion_may_end_another_that_waits_for_the_same_key():
    _, _, purgatory = make()
    second = Waiting()

    class Ender(Waiting):
        def on_complete(self):
            second.abandon()

    first = Ender()
    first.ready = True
    purgatory.watch(first, ["a"], 5)
    purgatory.watch(second, ["a"], 5)
    assert purgatory.check("a") == 1
    assert second.told == []


def test_try_complete_else_watch_does_not_park_what_is_ready():
    _, _, purgatory = make()
    operation = Waiting()
    operation.ready = True
    assert purgatory.try_complete_else_watch(operation, ["a"], 5)
    assert purgatory.statistics().parked == 0


def test_what_is_announced_is_not_checked_again_and_leaves_when_its_owner_says_so():
    clock, deadlines, purgatory = make()

    class Announced(Waiting):
        def try_complete(self, key=None):
            super().try_complete(key)
            return self.announce()

    operation, other = Announced(), Waiting()
    purgatory.watch(operation, ["a", "b"], 5)
    purgatory.watch(other, ["a"], 5)
    assert (purgatory.check("a"), purgatory.check("a"), purgatory.check("b")) == (1, 0, 0)
    assert operation.told == ["try a", "complete"]
    assert other.told == ["try a", "try a"]
    statistics = purgatory.statistics()
    assert (statistics.parked, statistics.watchers, statistics.completed) == (1, 2, 1)
    assert deadlines.statistics().active == 2
    clock.advance(6)
    deadlines.run_due()
    operation.leave()
    operation.leave()
    operation.abandon()
    assert operation.told == ["try a", "complete"]
    statistics = purgatory.statistics()
    assert (statistics.parked, statistics.watchers, statistics.watched_keys) == (0, 0, 0)
    assert (statistics.completed, statistics.expired, statistics.abandoned) == (1, 1, 0)
