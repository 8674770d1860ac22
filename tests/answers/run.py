"""A comparison: cases in the order of a seed, and their results."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from broker.registry import ADVERTISED
from protocol.api_keys import ApiKey
from tests.answers.accepted import Asked, accepted_reason
from tests.answers.cases import Case, cases_of, common_versions, pairs_of
from tests.answers.differences import Difference, differences
from tests.answers.pair import Outcome, Pair
from tests.frames.valid import Names

GROUPS_OF_THEIR_OWN = frozenset(
    (
        *(ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP),
        *(ApiKey.DELETE_GROUPS, ApiKey.DESCRIBE_GROUPS),
    )
)
"""APIs whose cases have groups of their own, because a case would disturb the next one."""
OWNERS = frozenset(
    (
        *(ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN),
        *(ApiKey.TXN_OFFSET_COMMIT, ApiKey.DESCRIBE_TRANSACTIONS, ApiKey.LIST_TRANSACTIONS),
        ApiKey.WRITE_TXN_MARKERS,
    )
)
"""APIs whose valid request is that of an owner."""
_SETUP_NAMES = Names(topic="t", topic_id=bytes(16), directory="/")


@dataclass(frozen=True, slots=True)
class Finding:
    """A difference that no rule accepts."""

    case: str
    difference: Difference
    theirs: Outcome
    ours: Outcome

    def text(self) -> str:
        """Return the finding in a line."""
        d = self.difference
        return (
            f"{self.case}: {d.path or 'all of it'}: Kafka {_short(d.theirs)}, here {_short(d.ours)}"
        )


@dataclass(slots=True)
class Comparison:
    """The results of a comparison."""

    cases: int = 0
    same: int = 0
    accepted: Counter[str] = field(default_factory=Counter)
    """The number of cases with accepted differences only, by the first reason."""
    findings: list[Finding] = field(default_factory=list)

    def note(self, case: str, asked: Asked) -> bool:
        """Compare the answers of one case; return whether they were the same."""
        self.cases += 1
        reasons = []
        found = differences(asked.theirs, asked.ours)
        for difference in found:
            reason = accepted_reason(difference, asked)
            if reason is None:
                self.findings.append(Finding(case, difference, asked.theirs, asked.ours))
                return False
            reasons.append(reason)
        if reasons:
            self.accepted[reasons[0]] += 1
        else:
            self.same += 1
        return not reasons

    def lines(self) -> list[str]:
        """Return the results for a person to read."""
        lines = [
            f"{self.cases} requests: {self.same} answered the same, "
            f"{sum(self.accepted.values())} with accepted differences, "
            f"{len(self.findings)} with others"
        ]
        lines += [f"  {count:5} {why}" for why, count in self.accepted.most_common()]
        return lines


def plan(versions: Sequence[tuple[ApiKey, int]], seed: int, count: int | None) -> list[Case]:
    """Return all single mutations and some pairs; or `count` of them, drawn from the seed."""
    rng = Random(seed)
    cases: list[Case] = []
    for key, version in versions:
        single = cases_of(key, version, _SETUP_NAMES)
        cases += single
        cases += pairs_of(key, version, _SETUP_NAMES, rng, max(5, len(single) // 3))
    if count is not None and count < len(cases):
        valid = [case for case in cases if not case.changes]
        cases = valid + rng.sample([c for c in cases if c.changes], max(0, count - len(valid)))
    cases.sort(key=lambda case: (case.key, case.version))
    return cases


def versions_of(pair: Pair) -> list[tuple[ApiKey, int]]:
    """Return each API and version that both brokers serve."""
    answer = pair.theirs.call(ApiKey.API_VERSIONS, 0, None)
    theirs = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
    return list(common_versions(ADVERTISED, theirs))


def compare(
    pair: Pair,
    cases: Sequence[Case],
    comparison: Comparison,
    *,
    on_case: Callable[[], object] | None = None,
) -> None:
    """Send both brokers each case; `comparison` takes the results."""
    for key, version, group in _by_version(cases):
        topic = f"{key.name.lower().replace('_', '-')}-v{version}"
        names = _named(pair, topic)
        if key in OWNERS:
            names = [s.own(n) for s, n in zip(pair.sides, names, strict=True)]
        for number, case in enumerate(group):
            if on_case is not None:
                on_case()
            if key in GROUPS_OF_THEIR_OWN:
                names = [one.about(group=f"{topic}-{number}") for one in names]
            requests = case.request(names[0]), case.request(names[1])
            both = pair.ask(key, version, requests)
            asked = Asked(key, version, requests[1], len(case.changes), *both)
            same = comparison.note(case.text(names[1]), asked)
            if key is ApiKey.DELETE_TOPICS and _deleted(both):
                names = _named(pair, topic)
            elif key is ApiKey.PRODUCE and not (same and both[1].kind == "answer"):
                # One may have stored what the other has not: all offsets would differ from here on.
                names = _named(pair, f"{topic}-{number}")


def _named(pair: Pair, topic: str) -> list[Names]:
    for side in pair.sides:
        side.make_topics([topic])
    return [side.names_about(topic) for side in pair.sides]


def _by_version(cases: Sequence[Case]) -> Iterator[tuple[ApiKey, int, list[Case]]]:
    groups: dict[tuple[ApiKey, int], list[Case]] = {}
    for case in cases:
        groups.setdefault((case.key, case.version), []).append(case)
    for (key, version), group in groups.items():
        yield key, version, group


def _deleted(both: tuple[Outcome, Outcome]) -> bool:
    return any(0 in outcome.codes for outcome in both)


def _short(value: Any) -> str:
    if isinstance(value, memoryview):
        value = bytes(value)
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
