"""The controller's queue: events that are as good as one, and how long events take."""

from broker.controller.events import ControllerActivity, ControllerEvent, EventQueue
from storage.distribution import KEPT
from storage.waits import sleep
from tests.support.scheduler import Scheduler

KIND = ControllerActivity.TOPIC_CHANGE


def test_an_event_waits_once_until_it_is_handled_or_dropped() -> None:
    scheduler = Scheduler()
    queue = EventQueue(scheduler)
    dropped: list[str] = []
    event = ControllerEvent(KIND, lambda: sleep(1), key="k", preempt=lambda: dropped.append("k"))
    queue.put(event)
    queue.put(event)
    assert queue.statistics().queued == 1
    queue.clear()
    assert (queue.statistics().queued, dropped) == (0, ["k"])
    queue.put(event)
    scheduler.begin(lambda: queue.run(lambda one: one.handle()))
    scheduler.advance(5)
    queue.put(event)
    scheduler.advance(5)
    assert queue.statistics().times[KIND].count == 2


def test_events_are_timed_while_they_wait_and_while_they_are_handled() -> None:
    scheduler = Scheduler()
    queue = EventQueue(scheduler)
    event = ControllerEvent(KIND, lambda: sleep(3))
    queue.put(event)
    queue.put(event)
    scheduler.advance(2)
    scheduler.begin(lambda: queue.run(lambda one: one.handle()))
    scheduler.advance(1)
    assert queue.statistics().activity is KIND
    scheduler.advance(9)
    found = queue.statistics()
    assert found.activity is ControllerActivity.IDLE
    assert (found.queue_times.count, found.queue_times.total_s) == (2, 2 + 5)
    assert (found.times[KIND].count, found.times[KIND].total_s) == (2, 3 + 3)


def test_no_event_is_left_out_of_the_count() -> None:
    """However many come between two scrapes."""
    scheduler = Scheduler()
    queue = EventQueue(scheduler)
    for _ in range(KEPT + 1):
        queue.put(ControllerEvent(KIND, lambda: sleep(0)))
    scheduler.begin(lambda: queue.run(lambda one: one.handle()))
    scheduler.advance(1)
    assert queue.statistics().queue_times.count == KEPT + 1
