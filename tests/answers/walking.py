"""All walks, and the way to take one with both brokers."""

from collections.abc import Callable
from random import Random

from tests.answers.accepted import Asked
from tests.answers.pair import Pair
from tests.answers.quota_walk import quota_walk
from tests.answers.run import Comparison
from tests.answers.topic_pages import pages_walk
from tests.answers.walks import (
    ENDS_TRANSACTIONS,
    State,
    Walk,
    group_walk,
    log_walk,
    transaction_walk,
)

WALKS: dict[str, Walk] = {
    "log": log_walk,
    "group": group_walk,
    "transaction": transaction_walk,
    "pages": pages_walk,
    "quotas": quota_walk,
}


def walk(
    pair: Pair,
    comparison: Comparison,
    name: str,
    seed: int,
    steps: int,
    *,
    on_step: Callable[[], object] | None = None,
) -> None:
    """Walk with both brokers. The walk ends at a difference, because all later answers differ."""
    rng = Random(f"{name}/{seed}")
    topic = f"walk-{name}-{seed}"
    for side in pair.sides:
        side.make_topics([topic])
    states = [State(side.names_about(topic)) for side in pair.sides]
    way = WALKS[name](rng)
    for number in range(steps):
        step = next(way)
        requests = step.request(states[0]), step.request(states[1])
        both = pair.ask(step.key, step.version, requests)
        asked = Asked(step.key, step.version, requests[1], 0, *both)
        before = len(comparison.findings)
        title = f"{step.key.name} v{step.version} {name} walk {seed}, step {number}: {step.text}"
        comparison.note(title, asked)
        if on_step is not None:
            on_step()
        if len(comparison.findings) > before:
            return
        for state, outcome in zip(states, both, strict=True):
            if outcome.kind == "answer":
                step.learn(state, outcome.answer)
        if step.key in ENDS_TRANSACTIONS:
            for side, state in zip(pair.sides, states, strict=True):
                side.wait_settled(state.names.transactional_id)
