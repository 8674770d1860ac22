"""The cost of access rules: produce requests to a broker with ten thousand rules, and without.

Each side is two more brokers of its form. They measure in turn, so that their figures can be
compared; `added %` is what rules add to the processor time of a request.
"""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

from frames import SMALL, batch_of, produce_frame
from load import check_reply
from sides import Side

from cases import Bench, Figures, Measure, case, per_request
from cases.requests import PRODUCE
from protocol.acls.rules import CLUSTER_NAME, Rule
from protocol.acls.vocabulary import Operation, PatternType, PermissionType, ResourceType
from protocol.api_keys import ApiKey
from tests.answers.access_grants import CLIENT, SETTINGS, creation

AT_ONCE = 1000
"""Rules of one request that makes them."""


def rules(count: int) -> Iterator[Rule]:
    """Rules about topics that there are not, behind those by which the bench may do all."""

    def rule(kind: ResourceType, name: str, pattern: PatternType, operation: Operation) -> Rule:
        return Rule(kind, name, pattern, CLIENT, "*", operation, PermissionType.ALLOW)

    # First the one that Kafka's own brokers need, who are the same user here.
    yield rule(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL, Operation.ALL)
    yield rule(ResourceType.TOPIC, "bench-", PatternType.PREFIXED, Operation.ALL)
    for number in range(count - 2):
        pattern = PatternType.PREFIXED if number % 2 else PatternType.LITERAL
        yield rule(ResourceType.TOPIC, f"bench-topic-{number}", pattern, Operation.WRITE)


@contextmanager
def ruled(side: Side, count: int) -> Iterator[Side]:
    """Another broker of a side, with rules."""
    with side.other(lambda made: made.broker.settings.update(SETTINGS)) as made:
        left = rules(count)
        while some := list(itertools.islice(left, AT_ONCE)):
            made.call(ApiKey.CREATE_ACLS, 3, creation(some))
        yield made


def produce(
    bench: Bench, side: Side, connections: int, inflight: int, count: int
) -> Iterator[Measure]:
    """Produce requests of one record of 0.9 KB, acks=all, with access rules and without."""
    with ruled(side, count) as with_rules, side.other() as without:

        def measured(one: Side) -> Figures:
            with one.topics(1, 1) as (topic,):
                frames = [produce_frame(topic, range(1), batch_of(SMALL))]
                told = bench.load(one, frames, connections, inflight)
            check_reply(told, ApiKey.PRODUCE, PRODUCE)
            return per_request(told)

        orders = itertools.cycle([(without, with_rules), (with_rules, without)])

        def measure() -> Figures:
            told = {one is with_rules: measured(one) for one in next(orders)}
            cost = "CPU us/request"
            plain = told[False][cost]
            return {
                **told[True],
                "CPU us/request without rules": plain,
                "added %": (told[True][cost] / plain - 1) * 100,
            }

        yield measure


CASES = {
    f"access/0.9 KB, {connections} x {inflight}, 10,000 rules": case(
        produce, connections, inflight, 10_000
    )
    for connections, inflight in ((1, 1), (4, 1), (64, 1))
}
