"""Problems of a cluster, found in the answers of its brokers. Pure.

A replica whose broker or log directory is gone makes its partition under-replicated as well. Both
problems are reported, because they have different remedies.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from protocol.errors import ErrorCode
from protocol.messages.describe_log_dirs import DescribeLogDirsResponse, DescribeLogDirsResult
from tools.cluster.lagging import PartitionView
from tools.cluster.reassigning import Adding
from tools.log_ends import place_name
from tools.wire.brokers import Topics


class Problem(Enum):
    """Kinds of problems; the value is the text that is shown."""

    NOT_ALLOWED = "not allowed to see everything"
    NO_CONTROLLER = "no controller"
    BROKER_AWAY = "broker does not answer"
    OFFLINE_DIRECTORY = "log directory offline"
    NO_LEADER = "partition without a leader"
    OFFLINE_REPLICA = "replica offline"
    UNDER_REPLICATED = "partition under-replicated"


REMEDIES: Final = {
    Problem.NOT_ALLOWED: "what is hidden may be ill: let this user describe the cluster and all"
    " topics (pykafkalog acls)",
    Problem.NO_CONTROLLER: "topics cannot be changed until one is elected: start more brokers",
    Problem.BROKER_AWAY: "start it, or see its log for why it does not answer",
    Problem.OFFLINE_DIRECTORY: "mend the disk and restart the broker, whose log says what failed",
    Problem.NO_LEADER: "nobody can read or write it: bring back a broker or directory that has it",
    Problem.OFFLINE_REPLICA: "bring back the broker or the directory that has it",
    Problem.UNDER_REPLICATED: "it is on fewer brokers than it should be: see why replicas are"
    " missing; one that lags more and more has too slow a disk or network",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One problem at one place."""

    problem: Problem
    where: str
    """A broker, a directory or a partition."""
    detail: str = ""

    @property
    def remedy(self) -> str:
        """The action that removes the problem."""
        return REMEDIES[self.problem]


def partition_findings(
    topics: Topics, views: Iterable[PartitionView] = (), adding: Adding | None = None
) -> Iterator[Finding]:
    """Yield problems of partitions, from Metadata's answer by topic.

    `views` know why replicas are not in sync; without them only the brokers are named. A partition
    is under-replicated if its ISR has fewer replicas than it has without those of `adding`, as for
    Kafka's `kafka-topics --under-replicated-partitions` (`TopicCommand.getReplicationFactor`).
    """
    why = {(each.topic, each.partition): each.missing for each in views}
    adding = adding or {}
    for name, topic in sorted(topics.items()):
        for partition in sorted(topic.partitions, key=lambda each: each.partition_index):
            where = place_name((name, partition.partition_index))
            if partition.leader_id < 0:
                replicas = _brokers(partition.replica_nodes)
                yield Finding(problem=Problem.NO_LEADER, where=where, detail=f"of {replicas}")
            if partition.offline_replicas:
                yield Finding(
                    problem=Problem.OFFLINE_REPLICA,
                    where=where,
                    detail=f"on {_brokers(partition.offline_replicas)}",
                )
            added = adding.get((name, partition.partition_index), frozenset())
            settled = set(partition.replica_nodes) - added
            if len(partition.isr_nodes) < len(settled):
                missing = settled - set(partition.isr_nodes)
                views_of = why.get((name, partition.partition_index), ())
                known = [each for each in views_of if each.broker_id in missing]
                yield Finding(
                    problem=Problem.UNDER_REPLICATED,
                    where=where,
                    detail=(
                        "; ".join(each.text for each in known)
                        if known
                        else f"not in sync: {_brokers(missing)}"
                    ),
                )


def directory_findings(
    broker_id: int, directories: Iterable[DescribeLogDirsResult]
) -> Iterator[Finding]:
    """Yield problems of a broker's log directories, from DescribeLogDirs' answer."""
    for directory in directories:
        if directory.error_code:
            yield Finding(
                problem=Problem.OFFLINE_DIRECTORY,
                where=directory.log_dir or f"broker {broker_id}",
                detail=f"of broker {broker_id}",
            )


def permission_findings(answers: Iterable[DescribeLogDirsResponse]) -> Iterator[Finding]:
    """Yield a problem if brokers do not tell this user of their directories.

    It may not describe the cluster, so topics may be hidden from it, too.
    """
    codes = {answer.error_code for answer in answers} - {ErrorCode.NONE}
    for code in sorted(codes):
        yield Finding(problem=Problem.NOT_ALLOWED, where="cluster", detail=ErrorCode(code).text)


def controller_findings(controller_id: int) -> Iterator[Finding]:
    """Yield a problem if the controller's id is -1: there is none."""
    if controller_id < 0:
        yield Finding(problem=Problem.NO_CONTROLLER, where="cluster")


def _brokers(ids: Iterable[int]) -> str:
    numbers = sorted(ids)
    return ("broker " if len(numbers) == 1 else "brokers ") + ", ".join(map(str, numbers))
