"""Broker keys of metrics, quotas and tiered storage."""
# ruff: noqa: E501 - one key, one line: a table is read across

from config.key_building import (
    BOOLEAN,
    CLASS,
    CLUSTER_WIDE,
    DOUBLE,
    HIGH,
    INT,
    LIST,
    LONG,
    LONG_MAX,
    LOW,
    MEDIUM,
    STRING,
    inert,
    key,
)
from config.validators import Validator, at_least, between


def _not_empty(value: object) -> str | None:
    return "String must be non-empty" if value == "" else None


NON_EMPTY = Validator("non-empty string", _not_empty)

KEYS = (
    inert("metrics.num.samples", INT, 2, LOW, "Kafka's own metrics: samples of a rate.", at_least(1)),
    inert("metrics.sample.window.ms", LONG, 30000, LOW, "Kafka's own metrics: length of a sample.", at_least(1)),
    inert("metric.reporters", LIST, ("org.apache.kafka.common.metrics.JmxReporter",), LOW, "Java classes that report metrics. Here see metrics.http.listener.", None, CLUSTER_WIDE),
    inert("metrics.recording.level", STRING, "INFO", LOW, "Kafka's own metrics: the level that is recorded."),
    inert("kafka.metrics.reporters", LIST, (), LOW, "Java classes that report Yammer metrics."),
    inert("kafka.metrics.polling.interval.secs", INT, 10, LOW, "How often those report.", at_least(1)),
    inert("quota.producer.default", LONG, LONG_MAX, HIGH, "Kafka before 3.0: bytes per second of each producer.", at_least(1)),
    inert("quota.consumer.default", LONG, LONG_MAX, HIGH, "Kafka before 3.0: bytes per second of each consumer.", at_least(1)),
    key("quota.window.num", INT, 11, LOW, "Samples for client quotas.", at_least(1)),
    key("quota.window.size.seconds", INT, 1, LOW, "Length of such a sample.", at_least(1)),
    key("replication.quota.window.num", INT, 11, LOW, "Samples for replication quotas.", at_least(1)),
    key("replication.quota.window.size.seconds", INT, 1, LOW, "Length of such a sample.", at_least(1)),
    inert("alter.log.dirs.replication.quota.window.num", INT, 11, LOW, "Samples for quotas on moves between directories.", at_least(1)),
    inert("alter.log.dirs.replication.quota.window.size.seconds", INT, 1, LOW, "Length of such a sample.", at_least(1)),
    key("controller.quota.window.num", INT, 11, LOW, "Samples for quotas on changes of topics.", at_least(1)),
    key("controller.quota.window.size.seconds", INT, 1, LOW, "Length of such a sample.", at_least(1)),
    inert("client.quota.callback.class", CLASS, None, LOW, "The Java class that decides quotas. A value is refused."),
    inert("remote.log.storage.system.enable", BOOLEAN, False, MEDIUM, "Tiered storage. true is refused: there is none."),
    inert("remote.fetch.max.wait.ms", INT, 500, MEDIUM, "Tiered storage: how long a remote read may take.", at_least(1), CLUSTER_WIDE),
    inert("remote.list.offsets.request.timeout.ms", LONG, 30000, MEDIUM, "Tiered storage: how long a remote look-up may take.", at_least(1), CLUSTER_WIDE),
    inert("remote.log.index.file.cache.total.size.bytes", LONG, 1073741824, LOW, "Tiered storage: size of the index cache.", at_least(1), CLUSTER_WIDE),
    inert("remote.log.index.file.cache.ttl.ms", LONG, 900000, LOW, "Tiered storage: age of cached indexes.", at_least(-1)),
    inert("remote.log.manager.copier.thread.pool.size", INT, 10, MEDIUM, "Tiered storage: copier threads.", at_least(1), CLUSTER_WIDE),
    inert("remote.log.manager.copy.max.bytes.per.second", LONG, LONG_MAX, MEDIUM, "Tiered storage: copy quota.", at_least(1), CLUSTER_WIDE),
    inert("remote.log.manager.copy.quota.window.num", INT, 11, MEDIUM, "Tiered storage: samples of the copy quota.", at_least(1)),
    inert("remote.log.manager.copy.quota.window.size.seconds", INT, 1, MEDIUM, "Tiered storage: length of such a sample.", at_least(1)),
    inert("remote.log.manager.expiration.thread.pool.size", INT, 10, MEDIUM, "Tiered storage: expiry threads.", at_least(1), CLUSTER_WIDE),
    inert("remote.log.manager.fetch.max.bytes.per.second", LONG, LONG_MAX, MEDIUM, "Tiered storage: fetch quota.", at_least(1), CLUSTER_WIDE),
    inert("remote.log.manager.fetch.quota.window.num", INT, 11, MEDIUM, "Tiered storage: samples of the fetch quota.", at_least(1)),
    inert("remote.log.manager.fetch.quota.window.size.seconds", INT, 1, MEDIUM, "Tiered storage: length of such a sample.", at_least(1)),
    inert("remote.log.manager.follower.thread.pool.size", INT, 2, MEDIUM, "Tiered storage: follower threads.", at_least(1), CLUSTER_WIDE),
    inert("remote.log.manager.task.interval.ms", LONG, 30000, LOW, "Tiered storage: time between runs.", at_least(1)),
    inert("remote.log.manager.task.retry.backoff.ms", LONG, 500, LOW, "Tiered storage: first wait before a retry.", at_least(1)),
    inert("remote.log.manager.task.retry.backoff.max.ms", LONG, 30000, LOW, "Tiered storage: longest wait before a retry.", at_least(1)),
    inert("remote.log.manager.task.retry.jitter", DOUBLE, 0.2, LOW, "Tiered storage: randomness of those waits.", between(0, 0.5)),
    inert("remote.log.manager.thread.pool.size", INT, 2, MEDIUM, "Tiered storage: threads in all.", at_least(1)),
    inert("remote.log.metadata.custom.metadata.max.bytes", INT, 128, LOW, "Tiered storage: plug-in metadata of a segment.", at_least(0)),
    inert("remote.log.metadata.manager.class.name", STRING, "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager", MEDIUM, "Tiered storage: Java class for metadata.", NON_EMPTY),
    inert("remote.log.metadata.manager.class.path", STRING, None, MEDIUM, "Tiered storage: class path of that class."),
    inert("remote.log.metadata.manager.impl.prefix", STRING, "rlmm.config.", MEDIUM, "Tiered storage: prefix of that class's own keys.", NON_EMPTY),
    inert("remote.log.metadata.manager.listener.name", STRING, None, MEDIUM, "Tiered storage: listener that class connects to.", NON_EMPTY),
    inert("remote.log.reader.max.pending.tasks", INT, 100, MEDIUM, "Tiered storage: reads that may wait.", at_least(1)),
    inert("remote.log.reader.threads", INT, 10, MEDIUM, "Tiered storage: reader threads.", at_least(1), CLUSTER_WIDE),
    inert("remote.log.storage.manager.class.name", STRING, None, MEDIUM, "Tiered storage: Java class for segments.", NON_EMPTY),
    inert("remote.log.storage.manager.class.path", STRING, None, MEDIUM, "Tiered storage: class path of that class."),
    inert("remote.log.storage.manager.impl.prefix", STRING, "rsm.config.", MEDIUM, "Tiered storage: prefix of that class's own keys.", NON_EMPTY),
)  # fmt: skip
