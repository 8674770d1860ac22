"""The metric names that widespread Kafka dashboards query, and why this broker lacks some of them.

The names come from the queries of the dashboards as published in 2026. docs/metrics.md is made from
this table; a broker does not use it.
"""

from collections.abc import Mapping
from typing import Final

_TOPIC = "kafka_server_brokertopicmetrics_"
_REQUEST = "kafka_network_requestmetrics_"
_GROUPS = "kafka_coordinator_group_groupmetadatamanager_"
_REPLICAS = "kafka_server_replicamanager_"
_CONTROLLER = "kafka_controller_kafkacontroller_"
_SOCKETS = "kafka_server_socketservermetrics_"
_TRANSACTIONS = "kafka_server_transaction_coordinator_metrics_"


def _names(prefix: str, names: str) -> tuple[str, ...]:
    return tuple(prefix + name for name in names.split())


ASKED: Final[Mapping[str, tuple[str, ...]]] = {
    "Strimzi: Kafka (strimzi-kafka.json)": (
        *_names("container_", "cpu_usage_seconds_total memory_usage_bytes"),
        *_names("jvm_", "gc_collection_seconds_count gc_collection_seconds_sum"),
        *_names("jvm_", "memory_used_bytes threads_current"),
        *_names("kafka_cluster_partition_", "atminisr replicascount underminisr"),
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        *_names(_CONTROLLER, "activecontrollercount offlinepartitionscount"),
        "kafka_log_log_size",
        "kafka_network_socketserver_networkprocessoravgidle_percent",
        *_names(_TOPIC, "bytesin_total bytesout_total failedfetchrequests_total"),
        *_names(_TOPIC, "failedproducerequests_total messagesin_total"),
        *_names(_TOPIC, "totalfetchrequests_total totalproducerequests_total"),
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
        *_names("kafka_server_kafkaserver_linux_disk_", "read_bytes write_bytes"),
        *_names(_REPLICAS, "leadercount partitioncount underreplicatedpartitions"),
        "kafka_server_socket_server_metrics_connection_count",
        "kubelet_volume_stats_available_bytes",
        "process_open_fds",
    ),
    "Strimzi: Kafka Exporter (strimzi-kafka-exporter.json)": (
        "kafka_broker_info",
        *_names("kafka_cluster_partition_", "atminisr underminisr"),
        *_names("kafka_consumergroup_", "current_offset lag"),
        *_names("kafka_topic_partition_", "current_offset in_sync_replica leader_is_preferred"),
        *_names("kafka_topic_partition_", "oldest_offset replicas under_replicated_partition"),
        "kafka_topic_partitions",
    ),
    "Confluent: Kafka cluster (kafka-cluster.json)": (
        *_names("jvm_", "gc_collection_seconds_sum memory_bytes_max memory_used_bytes"),
        "kafka_cluster_partition_underminisr",
        "kafka_controller_controllerstats_uncleanleaderelectionspersec",
        *_names(_CONTROLLER, "activecontrollercount offlinepartitionscount"),
        *_names(_CONTROLLER, "preferredreplicaimbalancecount"),
        *_names(_GROUPS, "numgroups numgroupscompletingrebalance numgroupsdead numgroupsempty"),
        *_names(_GROUPS, "numgroupspreparingrebalance numgroupsstable"),
        *_names("kafka_log_log_", "size tiersize"),
        "kafka_network_acceptor_acceptorblockedpercent",
        *_names("kafka_network_requestchannel_", "requestqueuesize responsequeuesize"),
        *_names(_REQUEST, "deprecatedrequestspersec_fiveminuterate errorspersec localtimems"),
        *_names(_REQUEST, "remotetimems requestqueuetimems requestspersec responsequeuetimems"),
        *_names(_REQUEST, "responsesendtimems totaltimems"),
        "kafka_network_socketserver_networkprocessoravgidlepercent",
        *_names(_TOPIC, "bytesinpersec bytesoutpersec fetchmessageconversionspersec"),
        *_names(_TOPIC, "messagesinpersec producemessageconversionspersec"),
        "kafka_server_fetchsessioncache_incrementalfetchsessionevictionspersec",
        "kafka_server_fetchsessioncache_numincrementalfetchsessions",
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_oneminuterate",
        "kafka_server_kafkaserver_brokerstate",
        *_names("kafka_server_kafkaserver_linux_disk_", "read_bytes write_bytes"),
        *_names("kafka_server_replicafetchermanager_", "maxlag minfetchrate"),
        *_names(_REPLICAS, "isrexpandspersec isrshrinkspersec leadercount partitioncount"),
        *_names(_REPLICAS, "straypartitionscount straypartitionsmisclassifiedcount"),
        *_names(_REPLICAS, "straypartitionstotalsize underreplicatedpartitions"),
        *_names("kafka_server_sessionexpirelistener_zookeeper", "authfailurespersec"),
        *_names("kafka_server_sessionexpirelistener_zookeeper", "disconnectspersec"),
        *_names("kafka_server_sessionexpirelistener_zookeeper", "expirespersec"),
        *_names("kafka_server_sessionexpirelistener_zookeeper", "syncconnectspersec"),
        *_names(_SOCKETS, "connection_close_rate connection_count connection_creation_rate"),
        *_names(_SOCKETS, "connections"),
        "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms",
        *_names("kafka_tier_tasks_archive_tierarchiver_", "bytespersec retriespersec totallag"),
        "kafka_tier_tasks_tiertasks_numpartitionsinerror",
        "process_cpu_seconds_total",
    ),
    "Confluent: Kafka topics (kafka-topics.json)": (
        *_names(_CONTROLLER, "globalpartitioncount globaltopiccount"),
        *_names("kafka_log_log_", "logendoffset logstartoffset size tiersize"),
        *_names(_TOPIC, "bytesinpersec bytesoutpersec messagesinpersec"),
        *_names(_TOPIC, "totalfetchrequestspersec totalproducerequestspersec"),
        "kafka_server_kafkaserver_brokerstate",
    ),
    "Confluent: transaction coordinator (kafka-transaction-coordinator.json)": (
        *_names(_TRANSACTIONS, "active_transaction_total_time_max partition_load_time_avg"),
        *_names(_TRANSACTIONS, "partition_load_time_max partitions_total_size"),
        *_names(_TRANSACTIONS, "prepare_commit_to_complete_commit_latency"),
        *_names(_TRANSACTIONS, "transaction_state_error_count transaction_timeout_count"),
        *_names(_TRANSACTIONS, "transaction_timeout_rate transactional_id_count"),
        "kafka_server_kafkaserver_brokerstate",
    ),
}
"""Names by dashboard."""

_OTHERS: Final = "not a broker's: what runs containers tells it"
_CONFLUENT: Final = "Confluent Server has it, Apache Kafka has not"

WHY_NOT: Final = (
    ("container_", _OTHERS),
    ("kubelet_", _OTHERS),
    ("jvm_", "there is no JVM: `process_resident_memory_bytes` and `python_gc_…` say the like"),
    ("kafka_tier_", _CONFLUENT),
    ("kafka_log_log_tiersize", _CONFLUENT),
    (_TRANSACTIONS, _CONFLUENT),
    ("kafka_server_replicamanager_stray", _CONFLUENT),
    (
        "kafka_server_sessionexpirelistener_zookeeperauth",
        "to ZooKeeper it authenticates with certificates only",
    ),
    (
        "kafka_network_acceptor_",
        "one task accepts and serves all: nothing blocks it",
    ),
    (_REQUEST + "deprecated", "versions of requests are not counted"),
    (
        _REQUEST + "errorspersec",
        "error codes within replies are not counted; "
        "`kafka_network_requestmetrics_errors_total` has the broker's own faults",
    ),
    (
        _SOCKETS + "connections",
        "clients name their software as they like: as a label that would have no bound",
    ),
)
"""(prefix of names, reason); the first matching prefix decides."""


def reason(name: str) -> str:
    """Why the broker does not have this metric. Raises LookupError for a name without a reason."""
    for prefix, why in WHY_NOT:
        if name.startswith(prefix):
            return why
    raise LookupError(name)
