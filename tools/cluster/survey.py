"""Asks the brokers of a cluster for addresses, partitions, sizes and features."""

from collections import Counter
from dataclasses import dataclass

from protocol.messages.api_versions import ApiVersionsResponse
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from tools.cluster.health import (
    Finding,
    Problem,
    controller_findings,
    directory_findings,
    partition_findings,
    permission_findings,
)
from tools.cluster.lagging import PartitionView, out_of_sync, partition_views
from tools.cluster.reassigning import Adding, replicas_being_added
from tools.cluster.replica_ends import replica_ends
from tools.errors import CommandError
from tools.log_ends import Place
from tools.wire.brokers import Brokers, Topics


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerView:
    """One broker."""

    broker_id: int
    host: str
    port: int
    rack: str | None
    is_controller: bool
    leads: int
    """Number of partitions that it leads."""
    replicas: int
    """Number of replicas on it, including those that it leads."""
    out_of_sync: int
    """Number of these that are not in sync."""
    data_bytes: int | None
    """Size of all its logs; None if it did not answer, or may not tell this user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A feature: the level that the cluster uses (finalized), the broker's range (supported)."""

    name: str
    finalized: int | None
    supported: tuple[int, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """All brokers' answers together."""

    cluster_id: str
    controller_id: int
    brokers: tuple[BrokerView, ...]
    topics: int
    internal_topics: int
    partitions: int
    partition_views: tuple[PartitionView, ...]
    """All of them, by topic and number."""
    features: tuple[Feature, ...]
    reassigned: int
    """Number of partitions that are being reassigned."""
    findings: tuple[Finding, ...]


def survey(cluster: Brokers) -> ClusterView:
    """Ask every broker; one that does not answer is a finding. Raises CommandError."""
    topics = cluster.topics()
    controller = cluster.cluster.controller_id
    findings = list(controller_findings(controller))
    answers = {each: _directories(cluster, each, findings) for each in sorted(cluster.addresses)}
    told = [answer for answer in answers.values() if answer is not None]
    findings += permission_findings(told)
    adding = replicas_being_added(cluster)
    views = _partition_views(cluster, topics, adding)
    findings += partition_findings(topics, views, adding)
    leads = Counter(view.leader for view in views)
    replicas = Counter(broker for view in views for broker in view.replicas)
    absences = (missing for view in views for missing in view.missing)
    lagging = Counter(missing.broker_id for missing in absences if not missing.is_added)
    return ClusterView(
        cluster_id=cluster.cluster.cluster_id,
        controller_id=controller,
        brokers=tuple(
            BrokerView(
                broker_id=each.broker_id,
                host=each.host,
                port=each.port,
                rack=each.rack,
                is_controller=each.broker_id == controller,
                leads=leads[each.broker_id],
                replicas=replicas[each.broker_id],
                out_of_sync=lagging[each.broker_id],
                data_bytes=_data_bytes(answers[each.broker_id]),
            )
            for each in sorted(cluster.cluster.brokers, key=lambda broker: broker.broker_id)
        ),
        topics=sum(not topic.is_internal for topic in topics.values()),
        internal_topics=sum(bool(topic.is_internal) for topic in topics.values()),
        partitions=sum(len(topic.partitions) for topic in topics.values()),
        partition_views=views,
        features=features_of(cluster.any().api_versions),
        reassigned=len(adding),
        findings=tuple(findings),
    )


def _partition_views(cluster: Brokers, topics: Topics, adding: Adding) -> tuple[PartitionView, ...]:
    """Ask leaders and replicas that are not in sync how far they are; the others are not asked."""
    leaders = {
        (name, each.partition_index): each.leader_id
        for name, topic in topics.items()
        for each in topic.partitions
    }
    wanted: dict[int, list[Place]] = {}
    for place, missing in out_of_sync(topics).items():
        for broker in {leaders[place], *missing} & cluster.addresses.keys():
            wanted.setdefault(broker, []).append(place)
    ends = replica_ends(cluster, wanted)
    return tuple(partition_views(topics, cluster.addresses.keys(), ends, adding))


def features_of(api_versions: ApiVersionsResponse) -> tuple[Feature, ...]:
    """Return the features in an answer to ApiVersions, sorted by name."""
    finalized = {f.name: f.max_version_level for f in api_versions.finalized_features}
    supported = {f.name: (f.min_version, f.max_version) for f in api_versions.supported_features}
    return tuple(
        Feature(name=name, finalized=finalized.get(name), supported=supported.get(name))
        for name in sorted(finalized.keys() | supported.keys())
    )


def _directories(
    cluster: Brokers, broker_id: int, findings: list[Finding]
) -> DescribeLogDirsResponse | None:
    """Return the broker's answer; None if it does not answer, which is a finding."""
    try:
        request = DescribeLogDirsRequest(topics=None)
        answer = cluster.broker(broker_id).call(request, DescribeLogDirsResponse)
    except CommandError as error:
        where = f"broker {broker_id}"
        findings.append(Finding(problem=Problem.BROKER_AWAY, where=where, detail=str(error)))
        return None
    findings += directory_findings(broker_id, answer.results)
    return answer


def _data_bytes(answer: DescribeLogDirsResponse | None) -> int | None:
    if answer is None or answer.error_code:
        return None
    return sum(
        int(partition.partition_size)
        for directory in answer.results
        for topic in directory.topics
        for partition in topic.partitions
    )
