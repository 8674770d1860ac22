"""Why replicas are not in sync, from what Metadata and the brokers' ends of the log tell."""

from typing import Any

import pytest

from protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from tools.cluster.health import Problem, partition_findings
from tools.cluster.lagging import Absence, Ends, Missing, out_of_sync, partition_views
from tools.cluster.listing import show_partitions

PLACE = ("orders", 0)


def topics(**partition: Any) -> dict[str, Any]:
    """One topic of one partition: leader 1, replicas 1, 2, 3 all in sync, unless told otherwise."""
    told = {"leader_id": 1, "replica_nodes": [1, 2, 3], "isr_nodes": [1, 2, 3], **partition}
    partitions = [MetadataResponsePartition(partition_index=0, leader_epoch=4, **told)]
    return {"orders": MetadataResponseTopic(name="orders", partitions=partitions)}


@pytest.mark.parametrize(
    ("partition", "alive", "ends", "missing"),
    [
        ({}, {1, 2, 3}, {}, ()),
        (
            {"isr_nodes": [1, 2]},
            {1, 2},
            {(1, PLACE): 9},
            (Missing(broker_id=3, absence=Absence.AWAY),),
        ),
        (
            {"isr_nodes": [1, 2], "offline_replicas": [3]},
            {1, 2, 3},
            {},
            (Missing(broker_id=3, absence=Absence.OFFLINE),),
        ),
        (
            {"isr_nodes": [1]},
            {1, 2, 3},
            {(1, PLACE): 100, (2, PLACE): 40, (3, PLACE): 100},
            (
                Missing(broker_id=2, absence=Absence.LAGS, lag=60),
                Missing(broker_id=3, absence=Absence.CAUGHT_UP, lag=0),
            ),
        ),
        (
            {"isr_nodes": [1, 2]},
            {1, 2, 3},
            {(1, PLACE): 100},
            (Missing(broker_id=3, absence=Absence.UNKNOWN),),
        ),
        (
            {"leader_id": -1, "isr_nodes": [1]},
            {2, 3},
            {(2, PLACE): 7, (3, PLACE): 7},
            (
                Missing(broker_id=2, absence=Absence.NO_LEADER),
                Missing(broker_id=3, absence=Absence.NO_LEADER),
            ),
        ),
        # A replica that has more than its leader, before it is cut off, does not lag.
        (
            {"isr_nodes": [1, 2]},
            {1, 2, 3},
            {(1, PLACE): 5, (3, PLACE): 8},
            (Missing(broker_id=3, absence=Absence.CAUGHT_UP, lag=0),),
        ),
    ],
)
def test_why_replicas_are_not_in_sync(
    partition: dict[str, Any], alive: set[int], ends: Ends, missing: tuple[Missing, ...]
) -> None:
    (view,) = partition_views(topics(**partition), alive, ends)
    assert view.missing == missing
    assert (view.leader_epoch, view.replicas) == (4, (1, 2, 3))
    absent = out_of_sync(topics(**partition)).get(PLACE, ())
    assert absent == tuple(each.broker_id for each in missing)


def test_health_tells_why(capsys: pytest.CaptureFixture[str]) -> None:
    told = topics(isr_nodes=[1])
    views = list(partition_views(told, {1, 2}, {(1, PLACE): 1500, (2, PLACE): 200}))
    (finding,) = partition_findings(told, views)
    assert finding.problem is Problem.UNDER_REPLICATED
    assert finding.detail == "broker 2: lags by 1300 records; broker 3: its broker is away"
    show_partitions(views, as_json=False)
    line = capsys.readouterr().out.splitlines()[1]
    assert line.split()[:5] == ["orders:0", "1", "4", "1,2,3", "1"]
    assert line.endswith(finding.detail)
