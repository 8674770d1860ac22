"""The problems of a cluster, from its brokers' answers."""

import argparse
import re
from typing import Any

import pytest

from protocol.messages.api_versions import ApiVersionsResponse
from protocol.messages.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from protocol.messages.describe_log_dirs import DescribeLogDirsResponse, DescribeLogDirsResult
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from tools.cluster.health import (
    REMEDIES,
    Problem,
    controller_findings,
    directory_findings,
    partition_findings,
    permission_findings,
)
from tools.cluster.lagging import partition_views
from tools.cluster.listing import show_health
from tools.cluster.reassigning import replicas_being_added
from tools.cluster.survey import survey
from tools.errors import CommandError


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


@pytest.mark.parametrize(
    ("adding", "isr", "detail"),
    [
        ([], [1, 2], "not in sync: brokers 3, 4"),
        ([3, 4], [1, 2], None),
        ([3, 4], [1, 3], None),  # Kafka counts the ISR
        ([3, 4], [1], "not in sync: broker 2"),
        ([4], [1, 2], "not in sync: broker 3"),
        ([5], [1, 2, 3], "not in sync: broker 4"),
    ],
)
def test_replicas_that_are_being_added_are_not_missing(
    adding: list[int], isr: list[int], detail: str | None
) -> None:
    moving = topics(replica_nodes=[1, 2, 3, 4], isr_nodes=isr)
    for views in ((), tuple(partition_views(moving, [1, 2, 3, 4], {}))):
        found = partition_findings(moving, views, {("orders", 1): frozenset(adding)})
        shown = [each.detail for each in found]
        assert len(shown) == (detail is not None)
        assert views or shown in ([], [detail])
        named = re.findall(r"\d", detail or "")
        assert not views or re.findall(r"\d", "".join(shown)) == named


class Controller:
    """The part of `Brokers` for `replicas_being_added`: the controller's answer, or its refusal."""

    def __init__(self, answer: ListPartitionReassignmentsResponse | CommandError) -> None:
        self.answer = answer

    def ask_controller(self, request: Any, response: type[Any], codes: Any) -> Any:
        assert request.topics is None, "all of them"
        if isinstance(self.answer, CommandError):
            raise self.answer
        assert codes(self.answer) == [self.answer.error_code]
        return self.answer


@pytest.mark.parametrize(
    ("answer", "adding"),
    [
        (
            ListPartitionReassignmentsResponse(
                topics=[
                    OngoingTopicReassignment(
                        name="t",
                        partitions=[
                            OngoingPartitionReassignment(
                                partition_index=7,
                                replicas=[1, 2, 3],
                                adding_replicas=[3],
                                removing_replicas=[1],
                            )
                        ],
                    )
                ]
            ),
            {("t", 7): {3}},
        ),
        (ListPartitionReassignmentsResponse(error_code=31, topics=[]), {}),
        (CommandError("there is no controller"), {}),
    ],
)
def test_the_controller_knows_what_is_being_added(answer: Any, adding: dict[Any, Any]) -> None:
    cluster: Any = Controller(answer)
    assert replicas_being_added(cluster) == adding


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
    show_health(list(partition_findings(topics(leader_id=-1))) * 2, 0, as_json=False)
    assert capsys.readouterr().out.count(REMEDIES[Problem.NO_LEADER]) == 1


class Surveyed(Controller):
    """The part of `Brokers` for `survey`; no broker is there for sizes."""

    def __init__(self, isr: list[int]) -> None:
        adding = OngoingPartitionReassignment(partition_index=1, adding_replicas=[2])
        topic = OngoingTopicReassignment(name="orders", partitions=[adding])
        super().__init__(ListPartitionReassignmentsResponse(topics=[topic]))
        self.cluster = DescribeClusterResponse(controller_id=1, cluster_id="c", brokers=[])
        self.addresses: dict[int, Any] = {}
        self.isr = isr

    def topics(self) -> dict[str, Any]:
        return topics(isr_nodes=self.isr)

    def any(self) -> Any:
        return argparse.Namespace(api_versions=ApiVersionsResponse())


@pytest.mark.parametrize("isr", [[1, 2], [1]])
def test_a_partition_that_is_reassigned_is_healthy(
    isr: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    cluster: Any = Surveyed(isr)
    view = survey(cluster)
    assert (view.findings, view.reassigned) == ((), 1)
    show_health(view.findings, view.reassigned, as_json=False)
    assert capsys.readouterr().out.endswith("being added: 1 partition under reassignment\n")
    missing = [each.text for view in view.partition_views for each in view.missing]
    expected = [] if len(isr) == 2 else ["broker 2: is being added, its broker is away"]
    assert missing == expected


class SurveyedBrokers(Surveyed):
    """Three brokers that do not answer: 1 leads both partitions, 2 is being added to one."""

    def __init__(self, isr: list[int]) -> None:
        super().__init__(isr)
        self.addresses = {1: "", 2: "", 3: ""}
        self.cluster.brokers = [DescribeClusterBroker(broker_id=each) for each in self.addresses]

    def broker(self, broker_id: int) -> Any:
        raise CommandError(f"no answer from {broker_id}")

    def topics(self) -> dict[str, Any]:
        found = super().topics()
        found["orders"].partitions[0].isr_nodes = [1]
        return found


def test_each_broker_has_its_number_of_leaders_and_replicas() -> None:
    cluster: Any = SurveyedBrokers([1])
    counts = [(each.leads, each.replicas, each.out_of_sync) for each in survey(cluster).brokers]
    assert counts == [(2, 2, 0), (0, 2, 1), (0, 0, 0)]


def test_a_user_that_may_not_describe_the_cluster_does_not_hear_that_all_is_well() -> None:
    seen, refused = DescribeLogDirsResponse(), DescribeLogDirsResponse(error_code=31)
    assert list(permission_findings([seen, seen])) == []
    (found,) = permission_findings([refused, seen, refused])
    assert found.problem is Problem.NOT_ALLOWED
    assert "authoriz" in found.detail.lower()
