"""The differences that are accepted, each with its reason.

A difference is accepted by the first rule that covers it; what no rule covers is a finding. Those
that clients could notice are in docs/decisions/README.md (decision 41).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.schema.values import Value
from tests.answers.differences import Difference
from tests.answers.pair import Outcome

K, E = ApiKey, ErrorCode
UNKNOWN_ERROR: Final = int(E.UNKNOWN_SERVER_ERROR)
ISOLATION_LEVELS: Final = (0, 1)
WALL_MS: Final = 1_750_000_000_000
"""Records of the tests are older than this, what brokers write themselves is younger."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to both brokers, and their answers."""

    key: ApiKey
    version: int
    request: Any
    """The request to this broker."""
    mistakes: int
    """The number of fields that were mutated."""
    theirs: Outcome
    ours: Outcome

    @property
    def refused_here(self) -> bool:
        """Whether this broker refused: by an error other than the unknown one, or by hanging up."""
        codes = self.ours.codes - {0}
        return self.ours.kind == "closed" or (bool(codes) and UNKNOWN_ERROR not in codes)

    @property
    def repeats(self) -> bool:
        """Whether an array of the request has an element twice, or one without partitions."""
        return _repeats(self.request)


Rule = Callable[[Difference, Asked], bool]


def accepted_reason(difference: Difference, asked: Asked) -> str | None:
    """Return the reason to accept the difference; None if there is none."""
    return next((why for why, rule in RULES.items() if rule(difference, asked)), None)


_ARRAYS: Final = ("partitions", "partition_data", "partition_indexes", "topics")


def _repeats(value: Any) -> bool:
    if isinstance(value, list | tuple):
        elements = [repr(element) for element in value]
        return len(set(elements)) < len(elements) or any(_repeats(one) for one in value)
    if not isinstance(value, Value):
        return False
    inside = {name: getattr(value, name) for name in value._defaults}
    if any(inside.get(name) == [] for name in _ARRAYS):
        return True
    return any(_repeats(one) for one in inside.values())


# ---- the rules


def _kafka_breaks(d: Difference, a: Asked) -> bool:
    broken = a.theirs.kind in ("silent", "closed") or UNKNOWN_ERROR in a.theirs.codes
    return broken and a.refused_here


def _never_answered(d: Difference, a: Asked) -> bool:
    return a.theirs.kind == "silent" and (
        (a.key is K.ALTER_PARTITION_REASSIGNMENTS and a.version == 0)
        or a.key in (K.ADD_PARTITIONS_TO_TXN, K.INCREMENTAL_ALTER_CONFIGS, K.ALTER_CONFIGS)
        or a.key is K.WRITE_TXN_MARKERS
    )


def _protocol_twice(d: Difference, a: Asked) -> bool:
    if a.key is K.LIST_GROUPS:
        # Kafka's group stays as it is; here the member waits for its sync, and goes in time.
        ended = d.theirs == "PreparingRebalance" and d.ours in ("CompletingRebalance", "Empty")
        return ended and d.path == "groups.group_state"
    if a.key is not K.JOIN_GROUP or a.theirs.kind != "silent":
        return False
    names = [protocol.name for protocol in a.request.protocols]
    return len(set(names)) < len(names)


def _message(d: Difference) -> bool:
    return d.path.rpartition(".")[2].endswith("message")


def _timed_out(d: Difference, a: Asked) -> bool:
    return int(E.REQUEST_TIMED_OUT) in a.theirs.codes and a.request.timeout_ms < 1_000


def _isolation(d: Difference, a: Asked) -> bool:
    level = getattr(a.request, "isolation_level", 0)
    return level not in ISOLATION_LEVELS and UNKNOWN_ERROR in a.theirs.codes


def _fetch_breaks(d: Difference, a: Asked) -> bool:
    if a.key is not K.FETCH or UNKNOWN_ERROR not in a.theirs.codes:
        return False
    sizes = [part.partition_max_bytes for topic in a.request.topics for part in topic.partitions]
    return min(a.request.max_bytes, *sizes, 0) < 0 or a.request.session_id != 0


def _made_by_metadata(d: Difference, a: Asked) -> bool:
    return a.key is K.METADATA and d.path.startswith("topics") and bool(a.theirs.codes & {3, 5})


def _refused_sequence(d: Difference, a: Asked) -> bool:
    return (
        a.key is K.PRODUCE
        and a.mistakes == 0
        and a.request.transactional_id is not None
        and (d.theirs, d.ours) == (int(E.OUT_OF_ORDER_SEQUENCE_NUMBER), 0)
    )


def _marker_of_nobody(d: Difference, a: Asked) -> bool:
    return (
        a.key is K.WRITE_TXN_MARKERS
        and d.ours == int(E.INVALID_REQUEST)
        and any(one.producer_id < 0 or one.producer_epoch < 0 for one in a.request.markers)
    )


def _shared_group(d: Difference, a: Asked) -> bool:
    if a.key not in (K.JOIN_GROUP, K.DESCRIBE_GROUPS):
        return False
    named = a.request.groups if a.key is K.DESCRIBE_GROUPS else [a.request.group_id]
    return any("-v" not in name for name in named)


def _two_mistakes(d: Difference, a: Asked) -> bool:
    both = bool(a.theirs.codes - {0}) and bool(a.ours.codes - {0})
    return a.mistakes > 1 and both and d.path.endswith(("error_code", "message"))


def _once(d: Difference, a: Asked) -> bool:
    return a.repeats and (d.path.endswith("length") or a.mistakes > 1)


def _time_of_marker(d: Difference, a: Asked) -> bool:
    return d.path.endswith("timestamp") and min(d.theirs, d.ours) > WALL_MS


def _log_dirs(d: Difference, a: Asked) -> bool:
    return a.key is K.DESCRIBE_LOG_DIRS and d.path.startswith("results.topics")


def _field(pattern: str, *keys: ApiKey) -> Rule:
    matches = re.compile(pattern).fullmatch
    return lambda d, a: a.key in keys and matches(d.path) is not None


def _unsupported_resource(d: Difference, a: Asked) -> bool:
    kinds = {one.resource_type for one in a.request.resources} if a.key in _CONFIGS else set()
    return bool(kinds & {16, 32}) and int(E.INVALID_REQUEST) in a.ours.codes


_CONFIGS: Final = frozenset((K.DESCRIBE_CONFIGS, K.ALTER_CONFIGS, K.INCREMENTAL_ALTER_CONFIGS))
_ACLS: Final = frozenset((K.DESCRIBE_ACLS, K.CREATE_ACLS, K.DELETE_ACLS))

RULES: Final[Mapping[str, Rule]] = {
    "the wording of messages is ours": lambda d, a: _message(d) and bool(d.theirs and d.ours),
    "success has no message: null here, empty or NONE in Kafka": (
        lambda d, a: _message(d) and d.theirs in ("", "NONE") and d.ours is None
    ),
    "a refusal says why, also where Kafka gives the code alone": (
        lambda d, a: _message(d) and not d.theirs and bool(d.ours) and a.refused_here
    ),
    "Kafka 4 advertises Produce 0-2 and hangs up on them; they are served here": (
        lambda d, a: a.key is K.PRODUCE and a.version < 3 and a.theirs.kind == "closed"
    ),
    "SECURITY_DISABLED also for rules that make no sense, where Kafka hangs up": (
        lambda d, a: a.key in _ACLS and a.theirs.kind == "closed"
    ),
    "Kafka breaks (no answer, hangs up, unknown error) where this broker refuses": _kafka_breaks,
    "Kafka never answers, its answer cannot be written in this version": _never_answered,
    "Kafka fails over a protocol that a member names twice: no answer, no end of the rebalance": (
        _protocol_twice
    ),
    "unknown isolation levels read what is not committed; Kafka's unknown error": _isolation,
    "nothing takes long enough here to time out": _timed_out,
    "what is asked twice is answered each time, and what has no partitions is echoed": _once,
    "of two mistakes the one that is told may be another": _two_mistakes,
    "the time of a transaction marker": _time_of_marker,
    "each broker serves APIs of its own": _field(r"api_keys\..*|.*features.*", K.API_VERSIONS),
    "topic configs of Kafka 3.9 are known here": _field(
        r"(topics|results)\.configs\.length", K.CREATE_TOPICS, K.DESCRIBE_CONFIGS
    ),
    "synonyms in other units are shown; Kafka hides them": _field(
        r"results\.configs\.synonyms\..*", K.DESCRIBE_CONFIGS
    ),
    "a topic that was only validated has no id; Kafka's has one that is thrown away": (
        lambda d, a: (
            a.key is K.CREATE_TOPICS and d.path == "topics.topic_id" and a.request.validate_only
        )
    ),
    "which directory a partition lies in is each broker's choice": _log_dirs,
    "groups and client metrics have no configs here": _unsupported_resource,
    "there are no group configs to be allowed": _field(
        r"groups\.authorized_operations", K.DESCRIBE_GROUPS
    ),
    "no aborted transactions: null here, empty in Kafka": lambda d, a: (
        d.path.endswith("aborted_transactions") and not d.theirs and not d.ours
    ),
    "an error of a partition still says where its log begins and ends": lambda d, a: (
        d.path.rpartition(".")[2]
        in ("high_watermark", "last_stable_offset", "log_start_offset", "base_offset")
        and d.theirs == -1
        and bool(a.ours.codes - {0})
    ),
    "a broker on its own has no followers: a replica's id is not looked at": lambda d, a: (
        a.key in (K.FETCH, K.LIST_OFFSETS, K.OFFSET_FOR_LEADER_EPOCH)
        and _replica_id(a.request) != -1
    ),
    "a topic that is made by Metadata can be written to at once": _made_by_metadata,
    "a refused sequence is not remembered (KIP-890)": _refused_sequence,
    "a marker of no producer is refused": _marker_of_nobody,
    "groups that several cases name hang on the time between them": _shared_group,
    "a topic that there is not has no operations": lambda d, a: (
        d.path == "topics.topic_authorized_operations" and bool(a.ours.codes - {0})
    ),
    "negative sizes are none, and closing a session that there is not is no error": _fetch_breaks,
    "the answer repeats what was asked": _field(
        r"allow_replication_factor_change", K.ALTER_PARTITION_REASSIGNMENTS
    ),
    "Kafka verifies a partition once per transaction, this broker with each request": (
        lambda d, a: a.key is K.TXN_OFFSET_COMMIT and d.theirs == 0 and a.refused_here
    ),
    "groups that refused members have left behind go at other times": _field(
        r"groups\.length", K.LIST_GROUPS
    ),
}
"""By reason."""


def _replica_id(request: Any) -> int:
    state = getattr(request, "replica_state", None)
    if state is not None and state.replica_id != -1:
        return int(state.replica_id)
    return int(request.replica_id)
