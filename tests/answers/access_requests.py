"""Requests that name things with and without a grant of the client, at once.

The valid requests of an API about several topics, groups and transactional ids are merged into one
where its form allows: so one answer is denied in part. A request that names only one group is sent
twice.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from protocol.api_keys import ApiKey
from protocol.messages.fetch import ReplicaState
from protocol.records.builder import build_batch
from protocol.schema.values import Value
from tests.answers.access_grants import MAY, NOT
from tests.frames.valid import Names, valid_request

K = ApiKey
TOPICS: Final = (f"{MAY}a", f"{NOT}a", f"{MAY}missing", f"{NOT}missing")
"""The first two exist."""
ZERO: Final = bytes(16)

Change = Callable[[Any, Names], None]


@dataclass(frozen=True, slots=True)
class Form:
    """One form of an API's request."""

    name: str
    change: Change
    """Changes each valid request, before they are merged."""
    since: int = 0
    until: int = 1_000


def _set(**fields: Any) -> Change:
    def change(request: Any, names: Names) -> None:
        for name, value in fields.items():
            setattr(request, name, value)

    return change


def _by_id(request: Any, names: Names) -> None:
    for topic in request.topics:
        topic.name, topic.topic_id = None, names.topic_id


def _kind(kind: int) -> Change:
    def change(request: Any, names: Names) -> None:
        for one in request.resources:
            one.resource_type = kind
            one.resource_name = {2: names.topic, 32: names.group}.get(kind, str(names.broker_id))
            if kind == 32 and hasattr(one, "configs") and one.configs:
                one.configs[0].name = "consumer.session.timeout.ms"
            if kind == 4 and hasattr(one, "configs") and one.configs:
                one.configs[0].name, one.configs[0].value = "log.retention.ms", "70000000"
            if kind == 8 and hasattr(one, "configs") and one.configs:
                one.configs[0].name, one.configs[0].value = "root", "INFO"

    return change


def _transactional(request: Any, names: Names) -> None:
    request.transactional_id = names.transactional_id
    batch = build_batch(
        [(names.timestamp_ms, b"k", b"v", ())],
        producer_id=names.producer_id,
        producer_epoch=names.producer_epoch,
        base_sequence=0,
        transactional=True,
    )
    for topic in request.topic_data:
        for data in topic.partition_data:
            data.records = batch


def _as_replica(request: Any, names: Names) -> None:
    request.replica_state = ReplicaState(replica_id=1)
    request.replica_id = 1


def _all_of_group(request: Any, names: Names) -> None:
    if request.groups:
        for group in request.groups:
            group.topics = None
    request.topics = None


def _made(request: Any, names: Names) -> None:
    request.validate_only = False


FORMS: Final[dict[ApiKey, tuple[Form, ...]]] = {
    K.METADATA: (
        Form("all", _set(topics=None), 1),
        Form("all", _set(topics=[]), 0, 0),
        Form("by id", _by_id, 12),
        Form(
            "operations",
            _set(
                include_topic_authorized_operations=True,
                include_cluster_authorized_operations=True,
            ),
            8,
        ),
        Form("created", _set(allow_auto_topic_creation=True), 4),
    ),
    K.DELETE_TOPICS: (Form("by id", _by_id, 6),),
    K.DESCRIBE_CLUSTER: (Form("operations", _set(include_cluster_authorized_operations=True)),),
    K.DESCRIBE_GROUPS: (Form("operations", _set(include_authorized_operations=True), 3),),
    K.FIND_COORDINATOR: (Form("transaction", _set(key_type=1), 1),),
    K.OFFSET_FETCH: (Form("all", _all_of_group, 2),),
    K.INIT_PRODUCER_ID: (
        Form("idempotent", _set(transactional_id=None)),
        Form("with epoch only", _set(transactional_id=None, producer_epoch=3), 3),
    ),
    K.PRODUCE: (
        Form("transactional", _transactional, 3),
        Form("id without transaction", lambda r, n: setattr(r, "transactional_id", "not-t"), 3),
        Form("odd acks", _set(acks=7)),
    ),
    K.FETCH: (Form("of a replica", _as_replica), Form("new session", _set(session_epoch=0), 7)),
    K.LIST_OFFSETS: (Form("latest", lambda r, n: _timestamps(r, -1)),),
    K.CREATE_TOPICS: (Form("made", _made, 1),),
    K.DESCRIBE_CONFIGS: tuple(Form(f"kind {kind}", _kind(kind)) for kind in (4, 8, 32)),
    K.ALTER_CONFIGS: tuple(Form(f"kind {kind}", _kind(kind)) for kind in (4, 8, 32)),
    K.INCREMENTAL_ALTER_CONFIGS: tuple(Form(f"kind {kind}", _kind(kind)) for kind in (4, 8, 32)),
    K.SYNC_GROUP: (Form("without protocol", _set(protocol_name=None), 5),),
    K.ELECT_LEADERS: (Form("all", _set(topic_partitions=None)),),
    K.LIST_CONFIG_RESOURCES: (Form("all", _set(resource_types=[]), 1),),
    K.DESCRIBE_TOPIC_PARTITIONS: (
        Form("all", _set(topics=[], cursor=None, response_partition_limit=2_000)),
        Form("from the first", _set(cursor=None, response_partition_limit=2_000)),
        Form("one of them", _set(cursor=None, response_partition_limit=1)),
    ),
}
"""The forms of each API beside the plain one."""


def _timestamps(request: Any, timestamp: int) -> None:
    for topic in request.topics:
        for partition in topic.partitions:
            partition.timestamp = timestamp


PLAIN: Final = Form("plain", lambda request, names: None)


def forms_of(key: ApiKey, version: int) -> Iterator[Form]:
    """Yield the forms of an API's request in a version."""
    for form in (PLAIN, *FORMS.get(key, ())):
        if form.since <= version <= form.until:
            yield form


def merged_requests(key: ApiKey, version: int, form: Form, about: list[Names]) -> list[Any]:
    """Return the fewest requests that name all things of `about`."""
    requests: list[Any] = []
    for names in about:
        request = valid_request(key, version, names)
        form.change(request, names)
        if not any(_merge(other, request) for other in requests):
            requests.append(request)
    return requests


def _merge(one: Any, other: Any) -> bool:
    """Add the elements of the other's arrays; return False if a field has two values."""
    arrays = []
    for name in one._defaults:
        mine, theirs = getattr(one, name), getattr(other, name)
        if isinstance(mine, list) and isinstance(theirs, list):
            arrays.append((mine, theirs))
        elif repr(mine) != repr(theirs):
            return False
    for mine, theirs in arrays:
        for element in theirs:
            known = any(repr(element) == repr(own) for own in mine)
            if not known and not (
                isinstance(element, Value)
                and any(isinstance(own, Value) and _merge(own, element) for own in mine)
            ):
                mine.append(element)
    return True
