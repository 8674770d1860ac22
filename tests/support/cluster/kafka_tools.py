"""The command line of Apache Kafka 3.9, each call a JVM of its own."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.cluster.member import CLUSTER_KAFKA
from tests.support.cluster.view import Partition
from tests.support.kafka_jars import java

TOPICS = "org.apache.kafka.tools.TopicCommand"
LEADER_ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
CONFIGS = "kafka.admin.ConfigCommand"
ACLS = "kafka.admin.AclCommand"
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"


def tool(main: str, *words: str, bootstrap: str, check: bool = True, timeout: float = 120) -> str:
    """Run one; return what it printed. Raises AssertionError if it fails and `check` is set."""
    done = java(
        main,
        *("--bootstrap-server", bootstrap, *words),
        version=CLUSTER_KAFKA,
        timeout=timeout,
        check=check,
    )
    return done.stdout + ("" if check else done.stderr)


def under_replicated(bootstrap: str) -> list[str]:
    """Partitions that `kafka-topics --under-replicated-partitions` lists, as `topic-number`."""
    printed = tool(TOPICS, "--describe", "--under-replicated-partitions", bootstrap=bootstrap)
    found = re.findall(r"Topic: (\S+)\s+Partition: (\d+)", printed)
    return [f"{topic}-{number}" for topic, number in found]


def elect_leaders(bootstrap: str, kind: str = "preferred", place: Partition | None = None) -> str:
    """`kafka-leader-election`, for one partition or all."""
    where: Sequence[str] = ["--all-topic-partitions"]
    if place is not None:
        where = ["--topic", place[0], "--partition", str(place[1])]
    return tool(LEADER_ELECTION, "--election-type", kind, *where, bootstrap=bootstrap)


def reassign(
    bootstrap: str, directory: Path, wanted: Mapping[Partition, Sequence[int]], *more: str
) -> Path:
    """Begin a reassignment with `kafka-reassign-partitions`; return its file, for `verify`."""
    partitions = [
        {"topic": topic, "partition": number, "replicas": list(replicas)}
        for (topic, number), replicas in wanted.items()
    ]
    path = directory / "reassignment.json"
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    tool(REASSIGN, "--reassignment-json-file", str(path), "--execute", *more, bootstrap=bootstrap)
    return path


def reassigned(bootstrap: str, path: Path) -> bool:
    """Whether `--verify` says that all of it is done; it takes throttles away then."""
    printed = tool(REASSIGN, "--reassignment-json-file", str(path), "--verify", bootstrap=bootstrap)
    assert "failed" not in printed, printed
    return "still in progress" not in printed
