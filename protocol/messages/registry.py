"""The messages of each API key, and their codecs.

The table is plain data: the module that declares an API's messages is imported when the API is
first used. The table says what can be parsed and built; `broker.registry` says what a broker
advertises.
"""

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from protocol.api_keys import ApiKey
from protocol.schema import Api, Codec


@dataclass(frozen=True, slots=True)
class ApiSpec:
    """One API: the versions that are declared and the module that declares them."""

    key: ApiKey
    min_version: int
    max_version: int
    flexible_since: int | None
    """First version with compact lengths, tagged fields and header v2; None if there is none."""
    module: str
    """The module's name within `protocol.messages`."""

    def supports(self, version: int) -> bool:
        """Whether the version is declared."""
        return self.min_version <= version <= self.max_version

    def flexible(self, version: int) -> bool:
        """Whether the version is flexible: request header v2, response header v1."""
        return self.flexible_since is not None and version >= self.flexible_since

    @property
    def message(self) -> str:
        """The prefix of its messages' names, such as `ListOffsets`."""
        return "".join(part.capitalize() for part in self.module.split("_"))


SPECS: dict[int, ApiSpec] = {
    spec.key: spec
    for spec in (
        ApiSpec(ApiKey.PRODUCE, 0, 13, 9, "produce"),
        ApiSpec(ApiKey.FETCH, 0, 18, 12, "fetch"),
        ApiSpec(ApiKey.LIST_OFFSETS, 0, 11, 6, "list_offsets"),
        ApiSpec(ApiKey.METADATA, 0, 13, 9, "metadata"),
        ApiSpec(ApiKey.LEADER_AND_ISR, 0, 7, 4, "leader_and_isr"),
        ApiSpec(ApiKey.STOP_REPLICA, 0, 4, 2, "stop_replica"),
        ApiSpec(ApiKey.UPDATE_METADATA, 0, 8, 6, "update_metadata"),
        ApiSpec(ApiKey.CONTROLLED_SHUTDOWN, 0, 3, 3, "controlled_shutdown"),
        ApiSpec(ApiKey.OFFSET_COMMIT, 0, 10, 8, "offset_commit"),
        ApiSpec(ApiKey.OFFSET_FETCH, 0, 10, 6, "offset_fetch"),
        ApiSpec(ApiKey.FIND_COORDINATOR, 0, 6, 3, "find_coordinator"),
        ApiSpec(ApiKey.JOIN_GROUP, 0, 9, 6, "join_group"),
        ApiSpec(ApiKey.HEARTBEAT, 0, 4, 4, "heartbeat"),
        ApiSpec(ApiKey.LEAVE_GROUP, 0, 5, 4, "leave_group"),
        ApiSpec(ApiKey.SYNC_GROUP, 0, 5, 4, "sync_group"),
        ApiSpec(ApiKey.DESCRIBE_GROUPS, 0, 6, 5, "describe_groups"),
        ApiSpec(ApiKey.LIST_GROUPS, 0, 5, 3, "list_groups"),
        ApiSpec(ApiKey.SASL_HANDSHAKE, 0, 1, None, "sasl_handshake"),
        ApiSpec(ApiKey.API_VERSIONS, 0, 5, 3, "api_versions"),
        ApiSpec(ApiKey.CREATE_TOPICS, 0, 7, 5, "create_topics"),
        ApiSpec(ApiKey.DELETE_TOPICS, 0, 6, 4, "delete_topics"),
        ApiSpec(ApiKey.DELETE_RECORDS, 0, 2, 2, "delete_records"),
        ApiSpec(ApiKey.INIT_PRODUCER_ID, 0, 5, 2, "init_producer_id"),
        ApiSpec(ApiKey.OFFSET_FOR_LEADER_EPOCH, 0, 4, 4, "offset_for_leader_epoch"),
        ApiSpec(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5, 3, "add_partitions_to_txn"),
        ApiSpec(ApiKey.ADD_OFFSETS_TO_TXN, 0, 4, 3, "add_offsets_to_txn"),
        ApiSpec(ApiKey.END_TXN, 0, 5, 3, "end_txn"),
        ApiSpec(ApiKey.WRITE_TXN_MARKERS, 0, 2, 1, "write_txn_markers"),
        ApiSpec(ApiKey.TXN_OFFSET_COMMIT, 0, 6, 3, "txn_offset_commit"),
        ApiSpec(ApiKey.DESCRIBE_ACLS, 1, 3, 2, "describe_acls"),
        ApiSpec(ApiKey.CREATE_ACLS, 1, 3, 2, "create_acls"),
        ApiSpec(ApiKey.DELETE_ACLS, 1, 3, 2, "delete_acls"),
        ApiSpec(ApiKey.DESCRIBE_CONFIGS, 0, 4, 4, "describe_configs"),
        ApiSpec(ApiKey.ALTER_CONFIGS, 0, 2, 2, "alter_configs"),
        ApiSpec(ApiKey.ALTER_REPLICA_LOG_DIRS, 0, 2, 2, "alter_replica_log_dirs"),
        ApiSpec(ApiKey.DESCRIBE_LOG_DIRS, 0, 5, 2, "describe_log_dirs"),
        ApiSpec(ApiKey.SASL_AUTHENTICATE, 0, 2, 2, "sasl_authenticate"),
        ApiSpec(ApiKey.CREATE_PARTITIONS, 0, 3, 2, "create_partitions"),
        ApiSpec(ApiKey.CREATE_DELEGATION_TOKEN, 1, 3, 2, "create_delegation_token"),
        ApiSpec(ApiKey.RENEW_DELEGATION_TOKEN, 1, 2, 2, "renew_delegation_token"),
        ApiSpec(ApiKey.EXPIRE_DELEGATION_TOKEN, 1, 2, 2, "expire_delegation_token"),
        ApiSpec(ApiKey.DESCRIBE_DELEGATION_TOKEN, 1, 3, 2, "describe_delegation_token"),
        ApiSpec(ApiKey.DELETE_GROUPS, 0, 3, 2, "delete_groups"),
        ApiSpec(ApiKey.ELECT_LEADERS, 0, 2, 2, "elect_leaders"),
        ApiSpec(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, 1, "incremental_alter_configs"),
        ApiSpec(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 1, 0, "alter_partition_reassignments"),
        ApiSpec(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0, 0, "list_partition_reassignments"),
        ApiSpec(ApiKey.OFFSET_DELETE, 0, 0, None, "offset_delete"),
        ApiSpec(ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1, 1, "describe_client_quotas"),
        ApiSpec(ApiKey.ALTER_CLIENT_QUOTAS, 0, 1, 1, "alter_client_quotas"),
        ApiSpec(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, 0, "describe_user_scram_credentials"),
        ApiSpec(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, 0, "alter_user_scram_credentials"),
        ApiSpec(ApiKey.ALTER_PARTITION, 0, 3, 0, "alter_partition"),
        ApiSpec(ApiKey.UPDATE_FEATURES, 0, 2, 0, "update_features"),
        ApiSpec(ApiKey.DESCRIBE_CLUSTER, 0, 2, 0, "describe_cluster"),
        ApiSpec(ApiKey.DESCRIBE_PRODUCERS, 0, 0, 0, "describe_producers"),
        ApiSpec(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, 0, "describe_transactions"),
        ApiSpec(ApiKey.LIST_TRANSACTIONS, 0, 2, 0, "list_transactions"),
        ApiSpec(ApiKey.ALLOCATE_PRODUCER_IDS, 0, 0, 0, "allocate_producer_ids"),
        ApiSpec(ApiKey.LIST_CONFIG_RESOURCES, 0, 1, 0, "list_config_resources"),
        ApiSpec(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0, 0, "describe_topic_partitions"),
    )
}


def spec(key: int) -> ApiSpec:
    """The API with this key. Raises KeyError if it is not declared."""
    return SPECS[key]


@cache
def request_api(key: int) -> Api:
    """The declaration of an API's request. Raises KeyError."""
    return _api(key, "Request")


@cache
def response_api(key: int) -> Api:
    """The declaration of an API's response. Raises KeyError."""
    return _api(key, "Response")


@cache
def request_codec(key: int, version: int) -> Codec[Any]:
    """The codec of a request. Raises KeyError for the key, ValueError for the version."""
    return request_api(key).codec(version)


@cache
def response_codec(key: int, version: int) -> Codec[Any]:
    """The codec of a response. Raises KeyError for the key, ValueError for the version."""
    return response_api(key).codec(version)


def _api(key: int, kind: str) -> Api:
    found = spec(key)
    module = import_module(f".{found.module}", __package__)
    api: Api = getattr(module, found.message + kind)
    return api
