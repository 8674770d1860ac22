"""The problems of a cluster, from its brokers' answers."""

from typing import Any

import pytest

from protocol.messages.describe_log_dirs import DescribeLogDirsResult
from protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from tools.cluster.health import (
    REMEDIES,
    Problem,
    controller_findings,
    directory_findings,
    partition_findings,
)
from tools.cluster.listing import show_health


def topics(**partition: Any) -> dict[str, Any]:
    """One topic, whose partition 1 is as told and the others sound."""
    sound = {"leader_id": 1, "replica_nodes": [1, 2], "isr_nodes": [2, 1]}
    partitions = [
        MetadataResponsePartition(partition_index=0, **sound),
        MetadataResponsePartition(partition_index=1, **{**sound, **partition}),
    ]
    return {"orders": MetadataResponseTopic(name="orders", partitions=partitions)}


@pytest.mark.parametrize(
    ("partition", "found"),
    [
        ({}, []),
        ({"leader_id": -1}, [(Problem.NO_LEADER, "of brokers 1, 2")]),
        ({"isr_nodes": [1]}, [(Problem.UNDER_REPLICATED, "not in sync: broker 2")]),
        ({"offline_replicas": [2]}, [(Problem.OFFLINE_REPLICA, "on broker 2")]),
        (
            {"leader_id": -1, "isr_nodes": [], "offline_replicas": [1, 2]},
            [
                (Problem.NO_LEADER, "of brokers 1, 2"),
                (Problem.OFFLINE_REPLICA, "on brokers 1, 2"),
                (Problem.UNDER_REPLICATED, "not in sync: brokers 1, 2"),
            ],
        ),
    ],
)
def test_partitions(partition: dict[str, Any], found: list[tuple[Problem, str]]) -> None:
    findings = list(partition_findings(topics(**partition)))
    assert [(each.problem, each.detail) for each in findings] == found
    assert {each.where for each in findings} <= {"orders:1"}


def test_directories_and_the_controller() -> None:
    sound = DescribeLogDirsResult(error_code=0, log_dir="/a")
    failed = DescribeLogDirsResult(error_code=56, log_dir="/b")
    (found,) = directory_findings(3, [sound, failed])
    assert (found.problem, found.where) == (Problem.OFFLINE_DIRECTORY, "/b")
    assert list(controller_findings(0)) == []
    (found,) = controller_findings(-1)
    assert found.problem is Problem.NO_CONTROLLER


def test_every_problem_has_a_remedy_that_is_shown_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert set(REMEDIES) == set(Problem)
    show_health(list(partition_findings(topics(leader_id=-1))) * 2, as_json=False)
    assert capsys.readouterr().out.count(REMEDIES[Problem.NO_LEADER]) == 1
