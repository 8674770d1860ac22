"""Which APIs are served: the files of `broker.api`, each with its facts and its handler.

Only `broker.components` (which builds `Services`) and the `make` of an API see everything; a
handler gets the two or three objects that it uses. ApiVersions advertises what is listed here and
nothing else: clients do not learn of an API without a handler.
"""

from typing import Final, Protocol

from broker.api import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    api_versions,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_transactions,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
    txn_offset_commit,
    update_features,
    write_txn_markers,
)
from broker.api_facts import Api, Served, by_key
from broker.security.authorizer import ALLOW_ALL, Authorizer
from broker.security.gate import Gate
from broker.services import Services
from protocol.api_keys import ApiKey


class _ApiFile(Protocol):
    """What is read from a file of `broker.api`."""

    @property
    def API(self) -> Api: ...


_FILES: Final[tuple[_ApiFile, ...]] = (
    # Data.
    produce,
    fetch,
    list_offsets,
    offset_for_leader_epoch,
    delete_records,
    init_producer_id,
    # Metadata and topics.
    api_versions,
    update_features,
    metadata,
    describe_cluster,
    create_topics,
    delete_topics,
    create_partitions,
    describe_configs,
    alter_configs,
    incremental_alter_configs,
    alter_replica_log_dirs,
    alter_partition_reassignments,
    list_partition_reassignments,
    describe_log_dirs,
    # ACLs: there are none, and the handlers answer so.
    describe_acls,
    create_acls,
    delete_acls,
    # Groups and offsets.
    find_coordinator,
    join_group,
    sync_group,
    heartbeat,
    leave_group,
    offset_commit,
    offset_fetch,
    describe_groups,
    list_groups,
    delete_groups,
    offset_delete,
    # Transactions.
    add_partitions_to_txn,
    add_offsets_to_txn,
    end_txn,
    write_txn_markers,
    txn_offset_commit,
    describe_transactions,
    list_transactions,
    describe_producers,
)
"""In the order of ApiVersions' answer."""

APIS: Final = {file.API.key: file.API for file in _FILES}

ADVERTISED: Final = {key: api.versions for key, api in APIS.items()}
"""API key to (lowest, highest) version."""


def build_handlers(services: Services, authorizer: Authorizer = ALLOW_ALL) -> dict[ApiKey, Served]:
    """One handler per API, each behind the gate of `authorizer` (`security.gate`)."""

    def topic_name(topic_id: bytes) -> str | None:
        topic = services.image.topic_by_id(topic_id)
        return None if topic is None else topic.name

    gate = Gate(authorizer, topic_name)
    return by_key(
        Served(api, gate.guard(api.make(services), api.accesses)) for api in APIS.values()
    )
