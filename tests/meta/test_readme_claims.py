"""Every claim of README.md has tests with real clients or files that `scripts/test` runs."""

import subprocess
import sys

from tests.selection import SHORT_MARKS
from tests.support.installation import ROOT

CLIENTS, ORACLE = "tests/integration/test_", "tests/conformance/test_"

CLAIMS: dict[str, tuple[str, ...]] = {
    # ---- what it is
    "speaks Kafka's wire protocol to unmodified clients": (
        f"{CLIENTS}client_kafka_python.py",
        f"{CLIENTS}client_aiokafka.py",
        f"{CLIENTS}client_confluent.py",
        f"{CLIENTS}client_java.py::test_admin_client_producer_and_consumer",
        f"{CLIENTS}client_spark.py",
    ),
    "directories are Kafka's, byte for byte": (
        f"{ORACLE}byte_equality.py::test_s_fmt_3_partition_files_are_byte_equal",
        f"{ORACLE}dump_log_segments.py::test_s_fmt_1_kafkas_tool_lists_what_was_acknowledged",
    ),
    # ---- Run it
    "`log.dirs=memory:` keeps everything in memory": (
        f"{CLIENTS}compaction.py::test_a_compacted_topic_becomes_small_and_keeps_the_latest_values",
    ),
    "listens on every interface and asks nobody who they are, and says so": (
        f"{CLIENTS}first_hour.py::test_ctrl_c_ends_a_consumer_and_a_broker",
    ),
    "Ctrl-C or SIGTERM stops it cleanly": (
        f"{CLIENTS}server_life.py::test_s_start_5_sigterm_leaves_everything_in_order",
        f"{CLIENTS}server_life.py::test_sigint_is_a_clean_stop_too",
    ),
    "after a kill it recovers on the next start": (
        f"{CLIENTS}server_life.py::test_s_rec_1_a_kill_is_followed_by_recovery",
    ),
    "its last line says why, and what to do": (
        f"{CLIENTS}first_hour.py::test_each_failure_says_what_it_is_and_what_to_do",
    ),
    "`pip install .` gives the same": (
        f"{CLIENTS}installed_wheel.py",
        f"{CLIENTS}plain_install.py::test_the_first_hour",
    ),
    # ---- Connect from Python, Look around
    "confluent_kafka import Consumer, Producer": (
        f"{CLIENTS}documented_commands.py::test_the_commands_of_a_page[README.md]",
    ),
    "The tour deletes the topic and the group that it makes": (
        f"{CLIENTS}documented_commands.py::test_the_commands_of_a_page[README.md]",
    ),
    "goes through all commands by tasks": (
        f"{CLIENTS}documented_commands.py::test_the_commands_of_a_page[docs/command-line.md]",
    ),
    "Each has `--help` with examples": (
        f"{CLIENTS}documented_commands.py::test_what_is_not_run_is_there_and_every_command_has_examples",
        f"{CLIENTS}plain_install.py::test_every_command_has_its_help",
    ),
    "The same files, from Python, while a broker uses them or without one": (
        f"{CLIENTS}installed_wheel.py::test_records_go_in_and_out_and_are_read_beside_a_users_own_modules",
        f"{ORACLE}direct_reader.py::test_a_directory_of_apache_kafka",
    ),
    # ---- Take over a Kafka directory
    "committed offsets, producers and transactions go on where Kafka stopped or was killed": (
        f"{ORACLE}one_directory_two_brokers.py::test_s_fmt_2_a_directory_goes_to_and_fro[new-clean]",
        f"{ORACLE}one_directory_two_brokers.py::test_s_fmt_2_a_directory_goes_to_and_fro[new-killed]",
        f"{ORACLE}transaction_moves.py",
    ),
    "may be left out, `meta.properties` says it": (f"{CLIENTS}adopt.py",),
    # ---- Build a pipeline on it
    "Topics to Parquet, Iceberg or Delta and back, each record once": (
        f"{CLIENTS}pipeline_lake.py"
        "::test_an_archive_has_each_committed_record_once_also_of_a_batch_given_twice",
        f"{CLIENTS}pipeline_lake.py::test_a_restore_goes_on_and_keeps_all_of_a_record",
    ),
    "log directories as a source for Spark": (
        f"{CLIENTS}source_spark.py::test_rows_are_those_of_the_kafka_source",
    ),
    "pandas and SQL": (
        "tests/unit/tools/test_sql.py::test_records_below_the_high_watermark_in_three_formats",
        "tests/unit/pykafkalog/test_topics.py",
    ),
    # ---- Run several
    "Brokers that share a ZooKeeper are one cluster": (
        f"{CLIENTS}cluster.py::test_records_lie_on_all_replicas_and_are_read_through_any_broker",
        f"{CLIENTS}cluster.py::test_the_next_leader_has_every_acknowledged_record",
        f"{CLIENTS}cluster_bad_input.py",
    ),
    "Brokers of Apache Kafka 3.9 may be members of it": (
        f"{CLIENTS}mixed_cluster.py::test_a_topic_is_replicated_between_both_kinds",
    ),
    "pipeline stats orders --html stats.html": (f"{CLIENTS}pipeline_stats.py",),
    # ---- What works with it
    "Kafka Streams": (f"{CLIENTS}streams.py",),
    "Java clients and tools": (f"{CLIENTS}client_java.py", f"{CLIENTS}tool_produce.py"),
    "Produce and Fetch with every codec": (
        f"{CLIENTS}client_confluent.py::test_produces_and_consumes_every_codec",
        f"{CLIENTS}client_java.py::test_console_producer_and_consumer_with_every_codec",
        f"{ORACLE}decompression.py",
    ),
    "idempotence and transactions (KIP-98, KIP-447, KIP-890)": (
        f"{CLIENTS}transactions.py",
        f"{CLIENTS}transactions_java.py::test_s_txn_5_a_copy_in_transactions_is_exact",
        f"{CLIENTS}transactions_wire.py",
    ),
    "groups of the classic protocol": (
        f"{CLIENTS}client_confluent.py::test_groups_rebalance_with_every_strategy",
        f"{CLIENTS}client_kafka_python.py::test_a_group_of_three_shares_the_partitions_and_resumes",
        f"{CLIENTS}client_aiokafka.py::test_two_members_share_a_topic",
    ),
    "topics, configs and the rest of the admin APIs": (
        f"{CLIENTS}client_confluent.py::test_admin_topics_partitions_configs_and_offsets",
        f"{CLIENTS}client_java.py::test_kafka_configs",
        f"{CLIENTS}client_java.py::test_kafka_consumer_groups",
    ),
    "retention, compaction, recovery": (
        "tests/whole/test_time.py",
        f"{CLIENTS}compaction.py::test_a_compacted_topic_becomes_small_and_keeps_the_latest_values",
        f"{ORACLE}recovery_against_kafka.py",
    ),
    "several log directories": (
        f"{CLIENTS}tool_log_dirs.py::test_a_partition_is_moved_and_waited_for",
    ),
    "Prometheus metrics under the names that Kafka's dashboards use": (
        f"{CLIENTS}server_life.py::test_what_a_client_did_is_what_a_scrape_says",
        "tests/meta/test_containers.py",
    ),
    "A broker says in ApiVersions what it can do": (
        f"{ORACLE}answers_against_kafka.py::test_single_requests",
    ),
}
"""Words of the README -> files, tests or single cases that prove them.

Not proven here: what counts megabytes and milliseconds of a start, which scripts/bench measures;
Pythons and flights, which `scripts/test --long` runs; and the programs of
`scripts/test --ecosystem`.
"""


def test_every_claim_is_in_the_readme() -> None:
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert [claim for claim in CLAIMS if " ".join(claim.split()) not in readme] == []


def test_every_claim_is_proven_by_scripts_test() -> None:
    tests = sorted({test for tests in CLAIMS.values() for test in tests})
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"),
            *("-m", SHORT_MARKS, *tests),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    chosen = done.stdout.splitlines()
    assert [test for test in tests if not any(line.startswith(test) for line in chosen)] == []
