"""The comparison of access: the answers of Apache Kafka and this broker to each client."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from broker.registry import ADVERTISED
from protocol.api_keys import ApiKey
from protocol.messages.metadata import MetadataRequest
from protocol.schema.values import Value
from tests.answers.accepted import Asked
from tests.answers.access_facts import facts
from tests.answers.access_grants import GrantSet, all_rules, creation, grant_sets, host_of
from tests.answers.access_names import (
    EXISTING,
    OWN_TRANSACTIONS,
    TRANSACTIONS,
    commits,
    names_of,
    of_one_case,
    own_topics,
    owned,
)
from tests.answers.access_record import AccessRecord
from tests.answers.access_requests import ZERO, forms_of, merged_requests
from tests.answers.cases import common_versions
from tests.answers.differences import Difference
from tests.answers.pair import Outcome, Pair, Side, ask_both
from tests.answers.run import Comparison, Finding
from tests.frames.valid import Names, valid_request
from tests.fuzz.findings import error_codes

K = ApiKey
_SETUP_S: Final = 10.0
BETWEEN: Final = {K.METADATA: (10,)}
"""Versions with a field that neither the oldest nor the newest has."""


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
        """The number of facts in Kafka's answers."""
        self.record = AccessRecord()

    def prepare(self) -> None:
        """Make topics, groups, transactions and all rules."""
        for side in self.pair.sides:
            self._about.append(_made(side, EXISTING))
            for request in commits():
                answer = side.call(K.OFFSET_COMMIT, 8, request)
                assert error_codes(answer) == {0}, answer
            for rules in _portions(all_rules(self.sets), 500):
                made = side.call(K.CREATE_ACLS, 3, creation(rules))
                assert {one.error_code for one in made.results} == {0}
        time.sleep(1)  # Kafka's broker learns of them from its controller

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
        """Compare the facts about access. No difference between them is accepted."""
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
        """Return the topics that exist at the end: the result of all creations and deletions."""

        def names(side: Side) -> set[str]:
            answer = side.call(K.METADATA, 9, MetadataRequest(topics=None))
            return {topic.name for topic in answer.topics}

        ours = names(self.pair.ours)
        deadline = time.monotonic() + _SETUP_S
        while (theirs := names(self.pair.theirs)) != ours and time.monotonic() < deadline:
            time.sleep(0.2)
        return theirs, ours

    def _prepared(self, key: ApiKey, version: int) -> list[list[Names]]:
        about, sides = self._about, self.pair.sides
        if key is K.DELETE_TOPICS:
            about = [_made(side, own_topics(self._number)) for side in sides]
        if key in TRANSACTIONS:
            if key in OWN_TRANSACTIONS or (key, version) not in self._owned:
                both = [_begun(side, some) for side, some in zip(sides, about, strict=True)]
                self._owned[key, version] = both
            about = self._owned[key, version]
        if key is K.DELETE_ACLS:
            for side, some in zip(sides, about, strict=True):
                for names in some:
                    side.call(K.CREATE_ACLS, 3, valid_request(K.CREATE_ACLS, 3, names))
        return [of_one_case(key, some, self._number) for some in about]


def _made(side: Side, topics: Sequence[str]) -> list[Names]:
    """Make topics; return the things of a case with them."""
    side.make_topics(topics)
    found = [side.names_about(topic) for topic in topics]
    return names_of(found[0], {one.topic: one.topic_id for one in found})


def _begun(side: Side, about: list[Names]) -> list[Names]:
    """Open a transaction with both topics for both transactional ids."""
    owners = [side.own(one) for one in {names.transactional_id: names for names in about}.values()]
    for owner in owners:
        side.add_to_transaction(owner, *EXISTING)
    return owned(about, owners)


def _align(key: ApiKey, outcomes: tuple[Outcome, Outcome], about: list[list[Names]]) -> None:
    """Make both answers comparable: ids of topics by name, and things of this table alone."""
    for outcome, names in zip(outcomes, about, strict=True):
        if outcome.kind == "answer":
            leave_out_others(key, outcome.answer, names)
            _sort_by_topic(outcome.answer, {one.topic_id: one.topic for one in names})


def leave_out_others(key: ApiKey, answer: Any, about: list[Names]) -> None:
    """Remove the things that other cases have made from a listing."""
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
    """Send both brokers all `wanted` requests, as every client."""
    access = AccessComparison(pair, comparison)
    access.prepare()
    for key, version in access.versions():
        for number, client in enumerate(access.sets):
            if (client.apis is None or key in client.apis) and wanted(key, client):
                access.ask(key, version, number)
                if on_case is not None:
                    on_case()
    return access
