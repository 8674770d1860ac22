"""Which tests run when, side by side or alone. The marks are set here, by path, in one place.

    scripts/test          what is unmarked, and `integration` and `conformance`
    scripts/test --long   the rest: `slow`, `crash`, `hostile`

`tests/meta/test_readme_claims.py` holds that every claim of the README is proven by the first.
`tests/unsteady.toml` lists tests that have been seen to fail by chance; they are `slow` as well.
"""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

SHORT_MARKS: Final = "(not slow and not crash and not hostile and not ecosystem)"
LONG_MARKS: Final = "((slow or crash or hostile) and not ecosystem)"
REAL_MARKS: Final = "(integration or conformance or ecosystem)"
"""Those that start brokers and the command line of an installed wheel."""

UNSTEADY: Final = Path(__file__).parent / "unsteady.toml"

LONG: Final = (
    # kills, and waits for what comes of them
    "tests/integration/test_child_processes.py",
    *(
        f"tests/integration/test_cluster.py::test_{begins}"
        for begins in ("a_", "an_", "below_", "internal_", "kafka_", "kills_", "partitions_", "pyk")
    ),
    "tests/integration/test_cluster_faults.py",
    "tests/integration/test_descriptors.py",
    "tests/integration/test_moves_between_directories.py",
    "tests/integration/test_pipeline_commands.py::test_nothing_is_lost_or_there_twice_after_kills[words0",
    "tests/integration/test_streams.py::test_s_txn_7_a_word_count_is_exact_while_its_tasks_move",
    "tests/integration/test_transactions_restart.py::test_s_txn_6_kills_between_many",
    "tests/integration/test_transactions_restart.py::test_s_txn_7_a_java_copy_is_exact_over_kills",
    # many starts of Kafka's tools, each a JVM
    "tests/integration/test_admin_tools.py",
    "tests/integration/test_broker_configs.py",
    "tests/integration/test_compacted_topics.py",
    "tests/integration/test_quotas.py::test_s_qta_3_javas",
    "tests/integration/test_quotas.py::test_s_qta_4_javas",
    "tests/integration/test_quotas.py::test_s_qta_6_kafka_configs",
    "tests/integration/test_sasl_java.py::test_admin_client_producer_and_consumer[SASL_PLAINTEXT",
    "tests/conformance/test_dump_log_lines.py",
    # Kafka 3.9, older forms, and histories that are drawn
    "tests/conformance/test_cleaning_against_kafka.py",
    "tests/conformance/test_compaction_two_brokers.py",
    "tests/conformance/test_one_directory_two_brokers.py::test_s_fmt_2_a_directory_goes_to_and_fro[old",
    *(
        f"tests/conformance/test_transaction_moves.py::test_s_txn_6_what_{was_left}[{version}"
        for was_left in ("kafka_left_open_goes_on_here", "was_left_open_here_goes_on_at_kafka")
        for version in ("3", "4.4.0-1")
    ),
    "tests/conformance/test_what_is_due_against_kafka.py",
    # every client of the table
    "tests/conformance/test_access_against_kafka.py::test_s_acl_1_the_same_is_denied[all",
    "tests/conformance/test_access_against_kafka.py::test_s_acl_8_the_audit_logs_have_the_same[all",
    "tests/conformance/test_access_against_kafka.py::test_topics_were_made_and_deleted[all",
    "tests/conformance/test_adopted_access.py",
    # times of throttling, each waited for at both brokers
    "tests/conformance/test_throttling_against_kafka.py",
    # the clients that are no client of Kafka's own
    "tests/integration/test_quotas.py::test_s_qta_3_a_consumer_of_confluent",
    "tests/integration/test_quotas.py::test_s_qta_3_kafka_pythons",
    # every example, and every form of a pipeline
    "tests/integration/test_child_programs.py",
    "tests/integration/test_documented_commands.py::test_the_examples_of_all_commands",
    "tests/integration/test_example_flights.py",
    "tests/integration/test_pipeline_commands.py::test_nothing_is_lost_or_there_twice_after_kills[words1",
    "tests/integration/test_pipeline_lake.py::test_a_batch",
    "tests/integration/test_pipeline_lake.py::test_a_compaction",
    "tests/integration/test_pipeline_lake.py::test_a_key",
    "tests/integration/test_pipeline_lake.py::test_a_row_that",
    "tests/integration/test_pipeline_lake.py::test_a_schema",
    "tests/integration/test_pipeline_lake.py::test_any_time",
    "tests/integration/test_pipeline_lake.py::test_avro",
    "tests/integration/test_pipeline_lake.py::test_fields",
    "tests/integration/test_pipeline_lake.py::test_names",
    "tests/integration/test_pipeline_lake.py::test_new_fields",
    "tests/integration/test_pipeline_lake.py::test_topics",
    "tests/integration/test_pipeline_lake.py::test_values",
    "tests/integration/test_pipeline_stats.py::test_any_time",
    "tests/integration/test_pipeline_stats.py::test_estimated_keys",
    "tests/integration/test_pipeline_stats.py::test_files_tell_the_same",
    "tests/integration/test_pipeline_stats.py::test_what_is_not_there",
    "tests/integration/test_source_spark.py::test_a_stream",
    "tests/integration/test_source_spark.py::test_as_many_tasks",
    "tests/integration/test_source_spark.py::test_conditions",
    "tests/integration/test_source_spark.py::test_what_is_wrong",
    "tests/integration/test_source_streams.py",
    "tests/integration/test_spark_cluster.py",
)
"""Beginnings of the ids of tests that are `slow`, beside those that say so themselves."""

ALONE: Final = (
    "tests/integration/test_quotas_held.py",  # rates and latencies, in real time
    "tests/soak/",  # clients of thirty kinds take both processors
    "tests/hostile/",  # a good client is answered within 250 ms, and memory comes back
    "tests/conformance/test_answers_against_kafka.py::test_s_read_6",  # at once, or after a wait
)
"""Beginnings of the ids of tests that other work on this machine would falsify: `slow` as well."""

SPARK: Final = (
    "tests/integration/test_client_spark.py",
    "tests/integration/test_pipeline_stats.py",
    "tests/integration/test_source_spark.py",
    "tests/integration/test_source_streams.py",
)
"""Files that share one JVM and one session of Spark."""

SPARK_TESTS: Final = (
    *SPARK,
    "tests/unit/pipeline",
    "tests/integration/test_pipeline_commands.py",
)
"""Tests that another version of Spark could break: `scripts/test --long spark`."""

FIRST: Final = (
    "tests/integration/test_example_flights.py",
    *SPARK,
    "tests/integration/test_pipeline_lake.py",
    "tests/integration/test_documented_commands.py",
    "tests/integration/test_pipeline_commands.py",
    "tests/conformance/test_one_directory_two_brokers.py",
    "tests/integration/test_compacted_topics.py",
    "tests/conformance/test_cleaning_against_kafka.py",
    "tests/integration/test_admin_tools.py",
    "tests/integration/test_streams.py",
    "tests/integration/test_child_programs.py",
    "tests/integration/test_broker_configs.py",
    "tests/integration/test_client_java.py",
    "tests/conformance/test_answers_against_kafka.py",
    "tests/conformance/test_transaction_moves.py",
    "tests/conformance/test_dump_log_segments.py",
    "tests/integration/test_spark_cluster.py",
    "tests/crash/test_kill_loop.py",
    "tests/anomalies/test_proof.py",
    "tests/anomalies/test_crowd.py",
)
"""Files that take longest, so that none of them begins when the others have ended."""


def mark(items: Iterable[pytest.Item]) -> None:
    """Set the marks of all tests that were collected."""
    slow = (*LONG, *ALONE)
    unsteady = {entry["test"] for entry in unsteady_tests()}
    for item in items:
        if item.nodeid.startswith(slow) or item.nodeid in unsteady:
            item.add_marker(pytest.mark.slow)
        if item.nodeid.startswith(ALONE):
            item.add_marker(pytest.mark.alone)


def unsteady_tests() -> list[dict[str, str]]:
    """Return the entries of `tests/unsteady.toml`."""
    entries: list[dict[str, str]] = tomllib.loads(UNSTEADY.read_text()).get("unsteady", [])
    return entries


def in_order(items: list[pytest.Item]) -> None:
    """Put the longest files first."""

    def place(item: pytest.Item) -> int:
        file = item.nodeid.partition("::")[0]
        return FIRST.index(file) if file in FIRST else len(FIRST)

    items.sort(key=place)


def group_of(nodeid: str) -> str:
    """Return what a test has in common with others that must be in the same worker.

    A file may have a broker, an oracle or another thing that all its tests share.
    """
    file = nodeid.partition("::")[0]
    return "spark" if file in SPARK else file
