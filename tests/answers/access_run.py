"""The comparison of access: each API as each client, and what Apache Kafka and this broker say."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from broker.registry import ADVERTISED
from protocol.api_keys import ApiKey
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from protocol.messages.metadata import MetadataRequest
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.schema.values import Value
from tests.answers.accepted import Asked
from tests.answers.access_facts import facts
from tests.answers.access_grants import (
    MAY,
    NOT,
    GrantSet,
    all_rules,
    creation,
    grant_sets,
    host_of,
)
from tests.answers.access_record import AccessRecord
from tests.answers.access_requests import TOPICS, ZERO, forms_of, merged_requests
from tests.answers.cases import common_versions
from tests.answers.differences import Difference
from tests.answers.pair import Outcome, Pair, Side, ask_both, eventually
from tests.answers.run import Comparison, Finding
from tests.frames.valid import Names, valid_request

K = ApiKey
EXISTING: Final = TOPICS[:2]
_SETUP_S: Final = 10.0
UNKNOWN_IDS: Final = {name: bytes(15) + bytes([n + 1]) for n, name in enumerate(TOPICS)}

BETWEEN: Final = {K.METADATA: (10,)}
"""Versions that ask for something that neither the oldest nor the newest has."""
OWN_GROUPS: Final = frozenset(
    (K.JOIN_GROUP, K.SYNC_GROUP, K.HEARTBEAT, K.LEAVE_GROUP, K.DELETE_GROUPS)
)
OWN_TOPICS: Final = frozenset((K.DELETE_TOPICS,))
OWN_TRANSACTIONS: Final = frozenset((K.END_TXN, K.WRITE_TXN_MARKERS))
"""They end what the next case would find."""
TRANSACTIONS: Final = frozenset(
    (
        *(K.PRODUCE, K.ADD_PARTITIONS_TO_TXN, K.ADD_OFFSETS_TO_TXN, K.END_TXN),
        *(K.TXN_OFFSET_COMMIT, K.DESCRIBE_TRANSACTIONS, K.LIST_TRANSACTIONS),
        K.WRITE_TXN_MARKERS,
    )
)


class AccessComparison:
    """Both brokers with the rules of all clients."""

    def __init__(self, pair: Pair, comparison: Comparison) -> None:
        self.pair = pair
        self.comparison = comparison
        self.sets = grant_sets()
        self._about: list[list[Names]] = []
        """For Kafka and for this broker: (may, not) × topics."""
        self._owned: dict[tuple[ApiKey, int], list[list[Names]]] = {}
        self._number = 0
        self.denied = 0
        """Facts that Kafka's answers had."""
        self.record = AccessRecord()

    def prepare(self) -> None:
        """Make topics, groups, transactions and all rules."""
        for side in self.pair.sides:
            side.make_topics(EXISTING)
            self._about.append(self._names(side, EXISTING))
            self._commit(side)
            for rules in _portions(all_rules(self.sets), 500):
                made = side.call(K.CREATE_ACLS, 3, creation(rules))
                assert {one.error_code for one in made.results} == {0}
        time.sleep(1)  # Kafka's broker learns of them from its controller

    def _names(self, side: Side, existing: Sequence[str]) -> list[Names]:
        found = {name: side.names_about(name) for name in existing}
        some = next(iter(found.values()))
        names = []
        for prefix in (MAY, NOT):
            for topic in (*existing, *TOPICS[2:]):
                known = found.get(topic, some).about(
                    topic=topic, topic_id=UNKNOWN_IDS.get(topic, ZERO)
                )
                if topic in found:
                    known = known.about(topic_id=found[topic].topic_id)
                names.append(
                    known.about(
                        group=f"{prefix}g",
                        transactional_id=f"{prefix}t",
                        new_topic=f"{topic[:4]}new",
                    )
                )
        return names

    def _commit(self, side: Side) -> None:
        for prefix in (MAY, NOT):
            topics = [
                OffsetCommitRequestTopic(
                    name=name,
                    partitions=[
                        OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
                    ],
                )
                for name in EXISTING
            ]
            request = OffsetCommitRequest(
                group_id=f"{prefix}g", generation_id_or_member_epoch=-1, topics=topics
            )
            answer = side.call(K.OFFSET_COMMIT, 8, request)
            codes = {p.error_code for t in answer.topics for p in t.partitions}
            assert codes == {0}, answer

    def _own(self, side: Side, about: list[Names]) -> list[Names]:
        """Both transactional ids have an open transaction with both topics."""
        owned = {}
        for prefix in (MAY, NOT):
            one = next(n for n in about if n.transactional_id == f"{prefix}t")
            names = side.own(one)
            topics = [AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in EXISTING]
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=names.transactional_id,
                v3_and_below_producer_id=names.producer_id,
                v3_and_below_producer_epoch=names.producer_epoch,
                v3_and_below_topics=topics,
            )

            def added(request: Any = request) -> bool:
                answer = side.call(K.ADD_PARTITIONS_TO_TXN, 3, request)
                return all(
                    p.partition_error_code == 0
                    for t in answer.results_by_topic_v3_and_below
                    for p in t.results_by_partition
                )

            eventually(added)
            owned[names.transactional_id] = names
        return [
            one.about(
                producer_id=owned[one.transactional_id].producer_id,
                producer_epoch=owned[one.transactional_id].producer_epoch,
            )
            for one in about
        ]

    def versions(self) -> list[tuple[ApiKey, int]]:
        """The oldest and the newest version of each API that both serve, and what is in between."""
        answer = self.pair.theirs.call(K.API_VERSIONS, 0, None)
        theirs = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
        by_key: dict[ApiKey, list[int]] = {}
        for key, version in common_versions(ADVERTISED, theirs):
            if key is not K.PRODUCE or version >= 3:  # Kafka 4 hangs up on older ones
                by_key.setdefault(key, []).append(version)
        return [
            (key, version)
            for key, found in by_key.items()
            for version in sorted({found[0], *BETWEEN.get(key, ()), found[-1]})
        ]

    def ask(self, key: ApiKey, version: int, number: int) -> None:
        """Ask in all forms as the client with the set of grants of this number."""
        client = self.sets[number]
        sides = self.pair.from_source(host_of(number))
        try:
            for form in forms_of(key, version):
                self._number += 1
                about = self._prepared(key, version)
                both = [merged_requests(key, version, form, names) for names in about]
                for requests in zip(*both, strict=True):
                    is_answered = key is not K.SYNC_GROUP
                    outcomes = ask_both(sides, key, version, requests, is_answered=is_answered)
                    if not is_answered and any(o.kind == "silent" for o in outcomes):
                        continue
                    _align(key, outcomes, about)
                    asked = Asked(key, version, requests[1], 0, *outcomes)
                    case = f"{key.name} v{version} {form.name} as {client.name}: {requests[1]}"
                    self.comparison.note(case, asked)
                    self._compare_facts(case, (key, version, form.name, number), outcomes, about)
        finally:
            for side in sides:
                side.hang_up()

    def _compare_facts(
        self,
        case: str,
        place: tuple[ApiKey, int, str, int],
        outcomes: tuple[Outcome, Outcome],
        about: list[list[Names]],
    ) -> None:
        """What is denied, and what is told of, is never an accepted difference."""
        theirs, ours = (
            facts(one.answer, {n.topic_id: n.topic for n in names})
            if one.kind == "answer"
            else [one.kind]
            for one, names in zip(outcomes, about, strict=True)
        )
        self.denied += len(theirs)
        if theirs != ours:
            difference = Difference("facts", theirs, ours)
            self.comparison.findings.append(Finding(case, difference, *outcomes))
        self.record.note(*place, theirs)

    def topics_made(self) -> tuple[set[str], set[str]]:
        """The topics that are there at last: what clients could make and delete."""

        def names(side: Side) -> set[str]:
            answer = side.call(K.METADATA, 9, MetadataRequest(topics=None))
            return {topic.name for topic in answer.topics}

        ours = names(self.pair.ours)
        deadline = time.monotonic() + _SETUP_S
        while (theirs := names(self.pair.theirs)) != ours and time.monotonic() < deadline:
            time.sleep(0.2)
        return theirs, ours

    def _prepared(self, key: ApiKey, version: int) -> list[list[Names]]:
        about = self._about
        if key in OWN_TOPICS:
            existing = tuple(f"{p}{self._number}" for p in (MAY, NOT))
            about = []
            for side in self.pair.sides:
                side.make_topics(existing)
                about.append(self._names(side, existing))
        if key in TRANSACTIONS:
            if key in OWN_TRANSACTIONS or (key, version) not in self._owned:
                owned = [self._own(s, n) for s, n in zip(self.pair.sides, about, strict=True)]
                self._owned[key, version] = owned
            about = self._owned[key, version]
        if key in OWN_GROUPS:
            about = [[n.about(group=f"{n.group}-{self._number}") for n in some] for some in about]
        if key is K.METADATA:
            about = [
                [
                    n if n.topic in EXISTING else n.about(topic=f"{n.topic}-{self._number}")
                    for n in some
                ]
                for some in about
            ]
        if key is K.DELETE_ACLS:
            for side, some in zip(self.pair.sides, about, strict=True):
                for names in some:
                    side.call(K.CREATE_ACLS, 3, valid_request(K.CREATE_ACLS, 3, names))
        if key is K.CREATE_TOPICS:
            about = [
                [n.about(new_topic=f"{n.new_topic}-{self._number}") for n in some] for some in about
            ]
        return about


def _align(key: ApiKey, outcomes: tuple[Outcome, Outcome], about: list[list[Names]]) -> None:
    """Make both answers comparable: ids of topics by name, and things of this table alone."""
    for outcome, names in zip(outcomes, about, strict=True):
        if outcome.kind == "answer":
            leave_out_others(key, outcome.answer, names)
            _sort_by_topic(outcome.answer, {one.topic_id: one.topic for one in names})


def leave_out_others(key: ApiKey, answer: Any, about: list[Names]) -> None:
    """Take from a listing what other cases have made."""
    if key is K.LIST_GROUPS:
        answer.groups = [one for one in answer.groups if one.group_id[4:] == "g"]
    known = {one.topic for one in about} | {"__consumer_offsets", "__transaction_state"}
    if key in (K.METADATA, K.DESCRIBE_TOPIC_PARTITIONS):  # Kafka makes topics when it has answered
        answer.topics = [one for one in answer.topics if one.name is None or one.name in known]
    if key is K.ELECT_LEADERS:
        results = answer.replica_election_results
        answer.replica_election_results = [one for one in results if one.topic in known]
    if key is K.LIST_CONFIG_RESOURCES:
        answer.config_resources = [
            one
            for one in answer.config_resources
            if getattr(one, "resource_type", 16) != 2 or one.resource_name in known
        ]


def _sort_by_topic(value: Any, names: dict[bytes, str]) -> None:
    for field in value._defaults:
        inside = getattr(value, field)
        if isinstance(inside, list):
            inside.sort(key=lambda one: names.get(getattr(one, "topic_id", ZERO), ""))
            for one in inside:
                if isinstance(one, Value):
                    _sort_by_topic(one, names)


def _portions(rules: list[Any], size: int) -> list[list[Any]]:
    return [rules[at : at + size] for at in range(0, len(rules), size)]


def compare_access(
    pair: Pair,
    comparison: Comparison,
    *,
    wanted: Callable[[ApiKey, GrantSet], bool] = lambda key, client: True,
    on_case: Callable[[], object] | None = None,
) -> AccessComparison:
    """Ask everything that is `wanted` of both, as every client."""
    access = AccessComparison(pair, comparison)
    access.prepare()
    for key, version in access.versions():
        for number, client in enumerate(access.sets):
            if (client.apis is None or key in client.apis) and wanted(key, client):
                access.ask(key, version, number)
                if on_case is not None:
                    on_case()
    return access
