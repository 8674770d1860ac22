"""Which APIs are served: the files of `broker.api`, each with its facts and its handler.

Only `broker.components` (which builds `Services`) and the `make` of an API see everything; a
handler gets the two or three objects that it uses. ApiVersions advertises what is listed here and
nothing else: clients do not learn of an API without a handler.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, Protocol

from broker.api import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    api_versions,
    create_acls,
    create_delegation_token,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_delegation_token,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_txn,
    expire_delegation_token,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
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
    renew_delegation_token,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
    txn_offset_commit,
    update_features,
    write_txn_markers,
)
from broker.api_facts import Api, Served, by_key
from broker.request import Handler
from broker.security.gate import Guarded
from broker.security.permissions import Permissions
from broker.services import Services
from protocol.api_keys import ApiKey


class _ApiFile(Protocol):
    """The part of a file of `broker.api` that this registry reads."""

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
    describe_topic_partitions,
    describe_cluster,
    create_topics,
    delete_topics,
    create_partitions,
    list_config_resources,
    describe_configs,
    alter_configs,
    incremental_alter_configs,
    describe_client_quotas,
    alter_client_quotas,
    elect_leaders,
    alter_replica_log_dirs,
    alter_partition_reassignments,
    list_partition_reassignments,
    describe_log_dirs,
    # Authentication.
    sasl_handshake,
    sasl_authenticate,
    create_delegation_token,
    renew_delegation_token,
    expire_delegation_token,
    describe_delegation_token,
    describe_user_scram_credentials,
    alter_user_scram_credentials,
    # Access rules.
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


_BEFORE_VERSION_2: Final = {
    ApiKey.PRODUCE: 11,
    ApiKey.TXN_OFFSET_COMMIT: 4,
    ApiKey.END_TXN: 4,
}
"""The last versions without transactions of version 2 (KIP-890): a cluster on ZooKeeper finalizes
no feature, and Kafka 3.9, which may read its transactions, knows none of them."""


def cluster_apis() -> dict[ApiKey, Api]:
    """The APIs of a member of a cluster; a stand-alone broker imports none of those between
    brokers."""
    from broker.api import (
        allocate_producer_ids,
        alter_partition,
        controlled_shutdown,
        leader_and_isr,
        stop_replica,
        update_metadata,
    )

    files: tuple[_ApiFile, ...] = (
        leader_and_isr,
        stop_replica,
        update_metadata,
        controlled_shutdown,
        alter_partition,
        allocate_producer_ids,
    )
    found = APIS | {file.API.key: file.API for file in files}
    for key, highest in _BEFORE_VERSION_2.items():
        found[key] = replace(found[key], versions=(found[key].versions[0], highest))
    return found


def advertised(apis: Iterable[Api]) -> dict[ApiKey, tuple[int, int]]:
    """API key to (lowest, highest) version."""
    return {api.key: api.versions for api in apis}


def build_handlers(services: Services) -> dict[ApiKey, Served]:
    """One handler per API, behind a gate if an authorizer has to decide first.

    In a cluster an API that only the controller serves is behind a second gate, which only the
    controller passes, and an API that shows the image waits until the broker knows the image.
    """
    if services.cluster is None:
        return by_key(_served(api, api.make(services), services.allowed) for api in APIS.values())
    from broker.membership.after_first_news import AfterFirstNews
    from broker.membership.only_controller import OnlyController

    controller = services.cluster.controller
    served = []
    for api in cluster_apis().values():
        handler = api.make(services)
        if api.controller_only:
            handler = OnlyController(handler, controller)
        if api.shows_image:
            handler = AfterFirstNews(handler, services.cluster.metadata_updates)
        served.append(_served(api, handler, services.allowed))
    return by_key(served)


def _served(api: Api, handler: Handler, allowed: Permissions | None) -> Served:
    if allowed is None or not api.accesses:
        return Served(api, handler)
    gate = Guarded(handler, api.accesses, allowed)
    return Served(api, gate, gate.passes)
