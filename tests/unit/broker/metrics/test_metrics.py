"""The scrape: names that dashboards know, text that Prometheus' own parser reads, a small HTTP."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace as Stub
from typing import Any

import pytest
from prometheus_client.metrics_core import GaugeMetricFamily

from broker.coordinator.group.statistics import GroupOffsets
from broker.metrics.exposition import CHUNK, ProcessFamilies, render
from broker.metrics.group_families import lag_families
from broker.metrics.http_listener import parse_address
from broker.metrics.lines import LINES_A_CHUNK, Lines
from broker.metrics.partition_families import (
    cluster_families,
    log_families,
    partition_families,
)
from broker.metrics.recent import APART_S, Recent
from broker.metrics.request_families import request_families
from broker.metrics.topic_families import topic_families
from broker.replication.topic_statistics import BrokerTopicStatistics, TopicStatistics
from config.definition import ConfigError
from protocol.errors import ErrorCode
from protocol.types import TopicPartition
from storage.waits import PAUSE, Work, at_once
from tests.support.metric_sources import committed, led, sources
from tests.support.scraped import at, parse, read, scraped
from tests.support.transaction_harness import T0, T1, TransactionHarness


def test_the_cleaners_gauges_have_kafkas_names() -> None:
    found = scraped()
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


def test_authentications_have_kafkas_names() -> None:
    """SASL comes after TLS, and either fails a client."""
    prefix, at = "kafka_server_socketservermetrics_", (("listener", "SASL"),)
    strimzis = "kafka_server_socket_server_metrics_"
    found = scraped()
    assert {key[0].removeprefix(prefix): value for key, value in found.items() if key[1] == at} == {
        "successful_authentication_total": 8,
        strimzis + "successful_authentication_total": 8,
        "successful_authentication_no_reauth_total": 1,
        "failed_authentication_total": 12,
        strimzis + "failed_authentication_total": 12,
        "successful_reauthentication_total": 3,
        "failed_reauthentication_total": 4,
        "expired_connections_killed_count_total": 5,
        "late_connections_killed_count_total": 6,
        "pushed_out_connections_killed_count_total": 7,
        "reauthentication_latency_avg": 250,
        "reauthentication_latency_max": 500,
    }


def test_their_rates_begin_with_the_second_scrape() -> None:
    now = [0.0]
    recent = Recent(lambda: now[0])
    scraped(recent=recent)
    now[0] = APART_S
    at = (("listener", "SASL"),)
    rates = {name for name, labels in scraped(recent=recent) if labels == at if "_rate" in name}
    prefix = "kafka_server_socketservermetrics_"
    assert rates == {
        f"{prefix}{what}_{how}_rate"
        for what in ("successful", "failed")
        for how in ("authentication", "reauthentication")
    }


def test_without_listeners_that_authenticate_there_is_nothing_of_it() -> None:
    sockets = replace(sources().sockets(), handshakes=None)
    found = scraped(authentication=dict, sockets=lambda: sockets)
    assert not [name for name, _ in found if "authenti" in name]


def test_without_a_cleaner_there_are_no_gauges_of_it() -> None:
    found = scraped(cleaner=lambda: None)
    assert not [name for name, _ in found if "logcleaner" in name]


SHOWN = {
    ("kafka_server_brokertopicmetrics_messagesin_total", at()): 5,
    ("kafka_server_brokertopicmetrics_messagesin_total", at(topic="t")): 4,
    ("kafka_server_kafkaserver_brokerstate", at()): 3,
    ("kafka_network_requestmetrics_requests_total", at(request="Produce")): 2,
    ("kafka_log_log_size", at(topic="t", partition="0")): 7,
    ("kafka_log_log_logendoffset", at(topic="t", partition="0")): 9,
    ("kafka_log_logmanager_offlinelogdirectorycount", at()): 1,
    ("kafka_server_replicamanager_partitioncount", at()): 1,
    ("kafka_server_replicamanager_produceridcount", at()): 6,
    ("kafka_server_replicamanager_partitionswithlatetransactionscount", at()): 1,
    ("kafka_coordinator_group_groupmetadatamanager_numgroups", at()): 3,
    ("kafka_coordinator_group_groupmetadatamanager_numgroupsstable", at()): 2,
    ("kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance", at()): 1,
    ("kafka_server_socketservermetrics_connection_count", at(listener="PLAINTEXT")): 3,
    ("kafka_network_socketserver_memorypoolavailable", at()): 90,
    ("kafka_network_socketserver_memorypoolused", at()): 10,
    # Metrics that Kafka does not have: the loop, and work in threads and child processes.
    ("kafka_server_eventloop_longestturn_seconds", at()): 0.06,
    ("kafka_server_eventloop_longturns_total", at()): 2,
    ("kafka_server_eventloop_longturns_seconds_total", at()): 0.11,
    ("kafka_server_batchopening_opened_total", at(where="thread")): 9,
    ("kafka_server_batchopening_opened_total", at(where="process")): 4,
    ("kafka_server_batchopening_toomuch_total", at()): 2,
    ("kafka_server_batchopening_waiting", at()): 1,
}


def test_names_that_dashboards_ask_for() -> None:
    found = scraped()
    assert {series: found.get(series) for series in SHOWN} == SHOWN


def test_what_topics_have_counted_is_copied_in_turns() -> None:
    topics = BrokerTopicStatistics()
    for number in range(1000):
        topics.of(f"t{number}").messages_in = number
    work = topics.snapshot()
    for taken in range(10):
        assert work.send(None) is PAUSE
        topics.forget(f"t{taken}")
    total, by_topic = at_once(work)
    assert total == TopicStatistics(messages_in=sum(range(1000)))
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
    found = scraped(transactions=statistics)
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
    found = scraped(transactions=statistics)
    prefix = "kafka_server_transaction_coordinator_metrics_"
    assert found[prefix + "loaded_records_total", ()] > 0
    assert found[prefix + "partition_load_time_max", ()] >= 0
    assert found[prefix + "partition_load_time_avg", ()] >= 0


def test_the_process_is_described() -> None:
    found = read([*ProcessFamilies().collect()])
    assert found["process_resident_memory_bytes", ()] > 1_000_000


def test_a_large_family_is_rendered_in_parts_with_one_header() -> None:
    family = GaugeMetricFamily("big", "many samples", labels=("n",))
    count = CHUNK * 3 + 17
    for number in range(count):
        family.add_metric((str(number),), number)
    text = b"".join(at_once(render([family])))
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


def test_each_phase_of_a_request_has_quantiles() -> None:
    found = scraped()
    prefix = "kafka_network_requestmetrics_"
    for phase, low, high in (
        ("totaltimems", 2, 2.5),
        ("requestqueuetimems", 0.2, 0.25),
        ("localtimems", 0.4, 0.5),
        ("remotetimems", 0, 0.001),
        ("responsequeuetimems", 0.5, 0.625),
        ("responsesendtimems", 1, 1.25),
    ):
        key = (("quantile", "0.99"), ("request", "Produce"))
        assert low <= found[prefix + phase, key] <= high, phase
        assert found[prefix + phase + "_count", key[1:]] == 2
    sums = {
        phase: found[f"{prefix}{phase}timems_sum", (("request", "Produce"),)]
        for phase in ("total", "requestqueue", "local", "remote", "responsequeue", "responsesend")
    }
    assert sums["total"] == pytest.approx(4)
    assert sums["responsequeue"] == pytest.approx(0.5)


def test_partitions_have_the_names_of_kafka_and_of_its_exporter() -> None:
    found = scraped()
    first, second = ((("partition", index), ("topic", "t")) for index in "01")
    for name, values in (
        ("kafka_cluster_partition_underreplicated", (0, 1)),
        ("kafka_cluster_partition_insyncreplicascount", (1, 1)),
        ("kafka_cluster_partition_underminisr", (0, 1)),
        ("kafka_cluster_partition_atminisr", (1, 0)),
        ("kafka_cluster_partition_replicascount", (1, 2)),
        ("kafka_cluster_partition_laststableoffsetlag", (2, 2)),
        ("kafka_topic_partition_current_offset", (10, 10)),
        ("kafka_topic_partition_oldest_offset", (2, 2)),
        ("kafka_topic_partition_replicas", (1, 2)),
        ("kafka_topic_partition_in_sync_replica", (1, 1)),
        ("kafka_topic_partition_under_replicated_partition", (0, 1)),
        ("kafka_topic_partition_leader", (1, 1)),
        ("kafka_topic_partition_leader_is_preferred", (1, 0)),
    ):
        assert (found[name, first], found[name, second]) == values, name
    assert found["kafka_topic_partitions", (("topic", "t"),)] == 2
    assert found["kafka_brokers", ()] == 1
    assert found["kafka_broker_info", (("address", "h:9092"), ("id", "1"))] == 1


@pytest.mark.parametrize(("adding", "under"), [(0, 1), (1, 0), (2, 0)])
def test_replicas_that_are_being_added_are_not_missing(adding: int, under: int) -> None:
    moving = led("t", 0, replicas=(1, 2, 3), isr=(1, 2), adding=adding)
    found = scraped(partitions=lambda: [moving])
    place = (("partition", "0"), ("topic", "t"))
    assert found["kafka_cluster_partition_underreplicated", place] == under
    assert found["kafka_cluster_partition_replicascount", place] == 3 - adding
    # kafka_exporter is a client: it knows the replicas alone.
    assert found["kafka_topic_partition_under_replicated_partition", place] == 1
    assert found["kafka_topic_partition_replicas", place] == 3


def test_a_partition_whose_disk_failed_has_its_log_only() -> None:
    gone = led("t", 0, isr=(1,))
    gone.unavailable = ErrorCode.KAFKA_STORAGE_ERROR
    found = scraped(partitions=lambda: [gone])
    assert not [name for name, _ in found if name.startswith("kafka_cluster_partition_")]


def test_how_far_groups_are_behind() -> None:
    found = scraped()
    group = ("consumergroup", 'a "group"')

    def of(name: str, partition: str) -> float | None:
        key = (group, ("partition", partition), ("topic", "t"))
        return found.get((f"kafka_consumergroup_{name}", key))

    assert [of("current_offset", index) for index in "012"] == [3, 9, -1]
    assert [of("lag", index) for index in "012"] == [7, 0, None], "nobody leads the last here"
    assert found["kafka_consumergroup_lag_sum", (group, ("topic", "t"))] == 7
    assert found["kafka_consumergroup_members", (group,)] == 2


def test_an_offset_that_was_committed_as_unknown_has_no_lag() -> None:
    groups = [GroupOffsets(group_id="g", members=0, offsets={"t": committed(-1)})]
    found = scraped(group_offsets=lambda: groups)
    key = (("consumergroup", "g"), ("partition", "0"), ("topic", "t"))
    assert found["kafka_consumergroup_lag", key] == -1
    assert found["kafka_consumergroup_lag_sum", (key[0], key[2])] == 0


def test_counters_have_the_names_of_both_rules() -> None:
    found = scraped()
    for name, value in (
        ("kafka_server_replicamanager_isrshrinks", 3),
        ("kafka_server_replicamanager_isrexpands", 4),
        ("kafka_controller_controllerstats_uncleanleaderelections", 5),
        ("kafka_server_brokertopicmetrics_messagesin", 5),
        ("kafka_server_fetchsessioncache_incrementalfetchsessionevictions", 0),
    ):
        assert found[name + "_total", ()] == found[name + "persec", ()] == value, name


def test_what_is_idle_shows_from_the_second_scrape_on() -> None:
    now = 100.0
    recent = Recent(lambda: now)
    idle = "kafka_network_socketserver_networkprocessoravgidle_percent"
    workers = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"
    closing = "kafka_server_socketservermetrics_connection_close_rate"

    def scrape(idle_s: float, busy_s: float, closed: int) -> dict[Any, float]:
        was = sources()
        requests = was.requests()
        pool = replace(requests.pool, busy_s=busy_s)
        return scraped(
            recent=recent,
            loop=lambda: replace(was.loop(), idle_s=idle_s),
            requests=lambda: replace(requests, pool=pool),
            sockets=lambda: replace(was.sockets(), closed={"PLAINTEXT": closed}),
        )

    assert (idle, ()) not in scrape(10, 8, 3)
    now += 10
    found = scrape(14, 48, 23)
    assert found[idle, ()] == pytest.approx(0.4)
    assert found[workers, ()] == pytest.approx(0.5), "40 s of the 80 that 8 workers have"
    assert found[closing, (("listener", "PLAINTEXT"),)] == pytest.approx(2)


def test_a_rate_is_of_the_last_minute_whoever_scrapes() -> None:
    now = 0.0
    recent = Recent(lambda: now)
    assert recent.rate("x", total=0) is None
    for second in range(1, 200):
        now = float(second)
        rate = recent.rate("x", total=10 * second if second <= 100 else 1000)
        if second == 100:
            assert rate == pytest.approx(10)
    assert now > 100 + 2 * APART_S
    assert rate == 0


def test_syncs_are_timed() -> None:
    found = scraped()
    name = "kafka_log_logflushstats_logflushrateandtimems"
    assert found[name + "_count", ()] == 1
    assert 4 <= found[name, (("quantile", "0.99"),)] <= 5


def test_many_lines_are_made_a_chunk_at_a_time() -> None:
    family = Lines("many", "gauge", "lines")
    for number in range(3 * LINES_A_CHUNK):
        family.add(f'n="{number}"', number)
    chunks = list(family.chunks())
    assert max(chunk.count(b"\n") for chunk in chunks) == LINES_A_CHUNK
    assert len(parse(b"".join(chunks))) == 3 * LINES_A_CHUNK


def one_log(number: int) -> Any:
    statistics = Stub(size=7, log_end_offset=9, log_start_offset=2, segment_count=1)
    return Stub(topic_partition=TopicPartition("t", number), statistics=lambda: statistics)


def groups_of(*offsets: Any) -> list[GroupOffsets]:
    return [GroupOffsets(group_id=f"g{n}", members=0, offsets=one) for n, one in enumerate(offsets)]


COUNTERS = {f"t{number}": TopicStatistics() for number in range(1_000)}


@pytest.mark.parametrize(
    ("gathering", "turns"),
    [
        (lambda: log_families(map(one_log, range(1_000))), 1_000),
        (lambda: lag_families(groups_of(*[{}] * 1_000), lambda *_: None), 1_000),
        (lambda: lag_families(groups_of({"t": committed(*range(1_000))}), lambda *_: 9), 1_001),
        (lambda: topic_families(Stub(topics=COUNTERS, all_topics=COUNTERS["t0"])), 1_000),
        (lambda: partition_families([led("t", n, isr=(1,)) for n in range(1_000)]), 1_000),
        (lambda: cluster_families([Stub(name=n, partitions=()) for n in COUNTERS], []), 1_000),
        (lambda: request_families(sources().requests(), sources().recent), 6),
    ],
    ids=["logs", "groups", "partitions of a group", "topics", "partitions", "cluster", "phases"],
)
def test_a_scrape_is_gathered_in_short_turns(
    gathering: Callable[[], Work[Any]], turns: int
) -> None:
    assert sum(1 for _ in gathering().__await__()) == turns


def test_handshakes_are_counted_by_listener_and_reason() -> None:
    found = scraped()
    of = (("listener", "PLAINTEXT"),)
    for prefix in ("kafka_server_socketservermetrics_", "kafka_server_socket_server_metrics_"):
        assert found[prefix + "successful_authentication_total", of] == 5
        assert found[prefix + "failed_authentication_total", of] == 4
    own = "kafka_server_socketservermetrics_handshakes_"
    assert found[own + "refused_total", (("reason", "certificate"),)] == 14
    assert (found[own + "under_way", ()], found[own + "waiting", ()]) == (3, 1)
