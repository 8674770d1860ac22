"""The scrape: names that dashboards know, text that Prometheus' own parser reads, a small HTTP."""

from collections.abc import Generator
from types import SimpleNamespace as Stub
from typing import Any

import pytest
import trio
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from broker.metrics.exposition import CHUNK, ProcessFamilies, render
from broker.metrics.families import SAMPLES_A_STEP, Sources, all_families
from broker.metrics.http_listener import parse_address
from broker.network.request_metrics import RequestMetrics, note_sent
from broker.replication.batch_opening import OpeningStatistics
from broker.replication.topic_statistics import (
    TOPICS_A_STEP,
    BrokerTopicStatistics,
    TopicStatistics,
)
from config.definition import ConfigError
from protocol.errors import ErrorCode
from protocol.types import TopicPartition
from tests.support.transaction_harness import T0, T1, TransactionHarness


def sources(**changes: Any) -> Sources:
    purgatory = Stub(watchers=3, parked=2, expired=1)
    produce = RequestMetrics("Produce")
    produce.requests = 2
    note_sent([produce, produce], 10.0, 10.001, 10.002)
    log = Stub(
        topic_partition=TopicPartition("t", 0),
        statistics=lambda: Stub(size=7, log_end_offset=9, log_start_offset=2, segment_count=1),
    )
    values: dict[str, Any] = {
        "broker_state": lambda: 3,
        "cluster_id": "c",
        "broker_id": 1,
        "replicas": lambda: at_once(
            all_topics=TopicStatistics(messages_in=5),
            topics={"t": TopicStatistics(messages_in=4)},
            partition_count=1,
            leader_count=1,
            offline_replica_count=0,
            under_replicated_partitions=0,
            under_min_isr_partition_count=0,
            at_min_isr_partition_count=0,
            producer_id_count=6,
            partitions_with_late_transactions_count=1,
            produce_purgatory=purgatory,
            fetch_purgatory=purgatory,
        ),
        "logs": lambda: [log],
        "log_manager": lambda: Stub(
            live_dirs=("/a",),
            offline_dirs=("/b",),
            damaged_indexes={"time": 2},
            open_segments=1,
            closed_segments=0,
        ),
        "cleaner": lambda: Stub(
            max_buffer_utilization_percent=41,
            cleaner_recopy_percent=42,
            max_clean_time_s=43,
            max_compaction_delay_s=44,
            dead_thread_count=0,
            manager=Stub(
                uncleanable_partitions={"/a": 1, "/b": 0},
                uncleanable_bytes={"/a": 45, "/b": 0},
                max_dirty_percent=46,
                time_since_last_run_ms=47,
            ),
        ),
        "controller": lambda: Stub(
            active_controller_count=1,
            global_topic_count=1,
            global_partition_count=1,
            offline_partitions_count=0,
            topics_to_delete_count=0,
        ),
        "groups": lambda: Stub(
            groups={"Stable": 2, "PreparingRebalance": 1},
            offsets=4,
            commits=5,
            expired_offsets=0,
            deleted_offsets=0,
            completed_rebalances=1,
            loading=Stub(load_time_max_ms=1.5),
        ),
        "transactions": lambda: TransactionHarness().coordinator.statistics(),
        "fetch_sessions": lambda: Stub(sessions=1, partitions_cached=2, evictions=0),
        "sockets": lambda: Stub(
            connections={"PLAINTEXT": 3},
            accepted=4,
            refused={},
            idle_closed=0,
            overdue_closed=0,
            frames=Stub(held=7, waiting=0),
            accept_errors=0,
            cold_reads=0,
            memory=Stub(available=90, used=10),
            buffers=Stub(bytes_in_use=0, bytes_free=131072),
        ),
        "channel": lambda: Stub(
            requests={"Produce": produce.snapshot()},
            pool=Stub(workers=8, busy=0, queued=0, busy_s=0.5),
            asides=3,
        ),
        "background": lambda: Stub(tasks={"x": Stub(runs=1, failures=0, seconds=0.1)}),
        "deadlines": lambda: Stub(active=1, failed=0),
        "opening": lambda: OpeningStatistics(in_threads=9, in_processes=4, too_much=2, waiting=1),
        "loop": lambda: Stub(longest_turn_s=0.06, long_turns=2, long_turns_s=0.11),
    }
    return Sources(**{**values, **changes})


def at_once(**fields: Any) -> Generator[None, None, Any]:
    """What is gathered in steps, in one."""
    yield
    return Stub(**fields)


def test_the_cleaners_gauges_have_kafkas_names() -> None:
    found = parse(trio.run(render, all_families(sources())))
    cleaner, manager = "kafka_log_logcleaner_", "kafka_log_logcleanermanager_"
    in_a, in_b = (("logDirectory", "/a"),), (("logDirectory", "/b"),)
    assert {
        key: value for key, value in found.items() if key[0].startswith((cleaner, manager))
    } == {
        (cleaner + "max_buffer_utilization_percent", ()): 41,
        (cleaner + "cleaner_recopy_percent", ()): 42,
        (cleaner + "max_clean_time_secs", ()): 43,
        (cleaner + "max_compaction_delay_secs", ()): 44,
        (cleaner + "deadthreadcount", ()): 0,
        (manager + "max_dirty_percent", ()): 46,
        (manager + "time_since_last_run_ms", ()): 47,
        (manager + "uncleanable_partitions_count", in_a): 1,
        (manager + "uncleanable_partitions_count", in_b): 0,
        (manager + "uncleanable_bytes", in_a): 45,
        (manager + "uncleanable_bytes", in_b): 0,
    }


def test_without_a_cleaner_there_are_no_gauges_of_it() -> None:
    found = parse(trio.run(render, all_families(sources(cleaner=lambda: None))))
    assert not [name for name, _ in found if "logcleaner" in name]


def parse(text: bytes) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def test_names_that_dashboards_for_kafka_ask_for() -> None:
    found = parse(trio.run(render, all_families(sources())))
    messages = "kafka_server_brokertopicmetrics_messagesin_total"
    assert found[messages, ()] == 5
    assert found[messages, (("topic", "t"),)] == 4
    assert found["kafka_server_kafkaserver_brokerstate", ()] == 3
    assert found["kafka_network_requestmetrics_requests_total", (("request", "Produce"),)] == 2
    p99 = found[
        "kafka_network_requestmetrics_totaltimems", (("quantile", "0.99"), ("request", "Produce"))
    ]
    assert 2 <= p99 <= 4.1
    partition = (("partition", "0"), ("topic", "t"))
    assert found["kafka_log_log_size", partition] == 7
    assert found["kafka_log_log_logendoffset", partition] == 9
    assert found["kafka_log_logmanager_offlinelogdirectorycount", ()] == 1
    assert found["kafka_server_replicamanager_partitioncount", ()] == 1
    prefix = "kafka_coordinator_group_groupmetadatamanager_"
    assert found[prefix + "numgroups", ()] == 3
    assert found[prefix + "numgroupsstable", ()] == 2
    assert found[prefix + "numgroupspreparingrebalance", ()] == 1
    prefix = "kafka_server_replicamanager_"
    assert found[prefix + "produceridcount", ()] == 6
    assert found[prefix + "partitionswithlatetransactionscount", ()] == 1
    listener = (("listener", "PLAINTEXT"),)
    assert found["kafka_server_socketservermetrics_connection_count", listener] == 3
    assert found["kafka_network_socketserver_memorypoolavailable", ()] == 90
    assert found["kafka_network_socketserver_memorypoolused", ()] == 10


def test_the_loop_is_measured() -> None:
    found = parse(trio.run(render, all_families(sources())))
    assert found["kafka_server_eventloop_longestturn_seconds", ()] == 0.06
    assert found["kafka_server_eventloop_longturns_total", ()] == 2
    assert found["kafka_server_eventloop_longturns_seconds_total", ()] == 0.11


def test_what_is_done_aside_is_measured() -> None:
    found = parse(trio.run(render, all_families(sources())))
    assert found["kafka_server_kafkarequesthandlerpool_asides", ()] == 3
    prefix = "kafka_server_batchopening_"
    assert found[prefix + "opened_total", (("where", "thread"),)] == 9
    assert found[prefix + "opened_total", (("where", "process"),)] == 4
    assert found[prefix + "toomuch_total", ()] == 2
    assert found[prefix + "waiting", ()] == 1


def test_ten_thousand_partitions_are_gathered_in_short_steps() -> None:
    """No step reads more than some hundred logs or topics."""
    count = 10_000
    read: list[int] = []

    def log(number: int) -> Any:
        def statistics() -> Any:
            read.append(number)
            return Stub(size=7, log_end_offset=9, log_start_offset=2, segment_count=1)

        return Stub(topic_partition=TopicPartition("t", number), statistics=statistics)

    logs = [log(number) for number in range(count)]
    most = before = 0
    for _ in all_families(sources(logs=lambda: logs)):
        most = max(most, len(read) - before)
        before = len(read)
    assert len(read) == count
    assert most <= SAMPLES_A_STEP


def test_what_topics_have_counted_is_copied_in_steps() -> None:
    topics = BrokerTopicStatistics()
    for number in range(1000):
        topics.of(f"t{number}").messages_in = number
    steps = topics.snapshot()
    taken = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            total, by_topic = end.value
            break
        topics.forget(f"t{taken}")
        taken += 1
    assert taken == 1000 // TOPICS_A_STEP
    assert total.messages_in == sum(range(1000))
    assert by_topic["t7"].messages_in == 7


def test_transactions_are_measured() -> None:
    broker = TransactionHarness()
    owner = broker.owner()
    broker.add(owner, T0)
    broker.verify(owner, T0)
    broker.verify(owner, T1)
    broker.end(owner)
    broker.add(broker.owner("open"), T0, transactional_id="open")
    broker.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    broker.init("fails")
    statistics = broker.coordinator.statistics
    found = parse(trio.run(render, all_families(sources(transactions=statistics))))
    prefix = "kafka_coordinator_transaction_transactionstatemanager_"
    assert found[prefix + "append_errors_total", ()] == 1
    assert found[prefix + "transactionalids", (("state", "Ongoing"),)] == 1
    assert found[prefix + "transactionalids", (("state", "CompleteCommit"),)] == 1
    assert found[prefix + "changes_total", (("state", "PrepareCommit"),)] == 1
    assert found[prefix + "partitions", (("state", "active"),)] >= 1
    prefix = "kafka_server_addpartitionstotxnmanager_"
    assert found[prefix + "verification_total", ()] == 2
    assert found[prefix + "verificationfailure_total", ()] == 1
    prefix = "kafka_coordinator_transaction_transactionmarkerchannelmanager_"
    assert found[prefix + "written_total", ()] == 1
    broker.log.fail_with = ErrorCode.NONE
    statistics = broker.restarted().coordinator.statistics
    found = parse(trio.run(render, all_families(sources(transactions=statistics))))
    prefix = "kafka_server_transaction_coordinator_metrics_"
    assert found[prefix + "loaded_records_total", ()] > 0
    assert found[prefix + "partition_load_time_max", ()] >= 0
    assert found[prefix + "partition_load_time_avg", ()] >= 0


def test_the_process_is_described() -> None:
    found = parse(trio.run(render, ProcessFamilies().collect()))
    assert found["process_resident_memory_bytes", ()] > 1_000_000


def test_a_large_family_is_rendered_in_parts_with_one_header() -> None:
    family = GaugeMetricFamily("big", "many samples", labels=("n",))
    count = CHUNK * 3 + 17
    for number in range(count):
        family.add_metric((str(number),), number)
    text = trio.run(render, [family])
    assert text.count(b"# TYPE") == 1
    assert len(parse(text)) == count


@pytest.mark.parametrize("text", ["host", "host:", "host:x", "host:70000"])
def test_a_bad_address_is_a_config_error(text: str) -> None:
    with pytest.raises(ConfigError, match=r"metrics\.http\.listener"):
        parse_address(text)


def test_addresses() -> None:
    assert parse_address("127.0.0.1:9404") == ("127.0.0.1", 9404)
    assert parse_address("[::1]:9404") == ("::1", 9404)
    assert parse_address(":9404") == ("", 9404)
