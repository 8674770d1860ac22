"""The smallest plan that still fails, for a person to look at."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.simulation.plan import Plan


def smaller_plans(plan: Plan) -> Iterator[Plan]:
    """Yield the plan without one thing each; the largest savings come first."""
    if plan.chances:
        yield replace(plan, chances={})
    for number in range(len(plan.crowd)):
        if len(plan.crowd) > 1:
            yield replace(plan, crowd=plan.crowd[:number] + plan.crowd[number + 1 :])
    if plan.seconds > 0.5:
        half = plan.seconds / 2
        events = tuple(event for event in plan.events if event.at < half)
        yield replace(plan, seconds=half, events=events)
    for number in range(len(plan.events)):
        yield replace(plan, events=plan.events[:number] + plan.events[number + 1 :])
    if plan.last_restart is not None:
        yield replace(plan, last_restart=None)
    for fault in plan.chances:
        yield replace(plan, chances={f: c for f, c in plan.chances.items() if f is not fault})


def shrunk(
    plan: Plan, fails: Callable[[Plan], bool], told: Callable[[Plan], None] = lambda plan: None
) -> Plan:
    """Remove things from a plan as long as it still `fails`; `told` gets each smaller plan."""
    while True:
        for smaller in smaller_plans(plan):
            if fails(smaller):
                plan = smaller
                told(plan)
                break
        else:
            return plan
