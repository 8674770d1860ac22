"""Asks the controller which replicas reassignments are adding."""

from collections.abc import Mapping

from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from tools.errors import CommandError
from tools.log_ends import Place
from tools.wire.brokers import Brokers

Adding = Mapping[Place, frozenset[int]]
"""By partition that is being reassigned, the brokers whose replicas are being added; maybe none."""


def replicas_being_added(cluster: Brokers) -> Adding:
    """Return them; nothing if the controller does not tell.

    Then a partition that is reassigned shows as under-replicated, which is better than no report.
    """
    try:
        answer = cluster.ask_controller(
            ListPartitionReassignmentsRequest(topics=None),
            ListPartitionReassignmentsResponse,
            lambda answer: [answer.error_code],
        )
    except CommandError:
        return {}  # Other parts of the report name a controller that does not answer, or is absent.
    return {
        (topic.name, partition.partition_index): frozenset(partition.adding_replicas)
        for topic in answer.topics
        for partition in topic.partitions
    }
