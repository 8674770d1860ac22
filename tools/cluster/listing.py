"""Prints a cluster as tables or as one JSON document."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tools.cluster.api_names import api_name
from tools.cluster.health import Finding
from tools.cluster.lagging import PartitionView
from tools.cluster.survey import ClusterView, Feature
from tools.json_output import print_document
from tools.log_ends import place_name
from tools.tables import count_of, number, print_table, size

Versions = Mapping[int, tuple[int, int]]


def show_cluster(view: ClusterView, *, as_json: bool) -> None:
    """Print brokers, counts, features and problems."""
    if as_json:
        print_document(
            {
                "cluster_id": view.cluster_id,
                "controller_id": view.controller_id,
                "brokers": [asdict(broker) for broker in view.brokers],
                "topics": view.topics,
                "internal_topics": view.internal_topics,
                "partitions": view.partitions,
                "under_replicated": [
                    _partition(each)
                    for each in view.partition_views
                    if any(not missing.is_added for missing in each.missing)
                ],
                "features": [_feature(feature) for feature in view.features],
                **_health(view.findings, view.reassigned),
            }
        )
        return
    internal = f" and {number(view.internal_topics)} internal" if view.internal_topics else ""
    print(f"cluster {view.cluster_id}")
    print(
        f"{count_of(len(view.brokers), 'broker')}, {count_of(view.topics, 'topic')}{internal},"
        f" {count_of(view.partitions, 'partition')}"
    )
    print_table(
        ("broker", "address", "rack", "controller", "leads", "replicas", "out of sync", "bytes"),
        (
            (
                broker.broker_id,
                f"{broker.host}:{broker.port}",
                broker.rack,
                "yes" if broker.is_controller else None,
                broker.leads,
                broker.replicas,
                broker.out_of_sync,
                size(broker.data_bytes),
            )
            for broker in view.brokers
        ),
    )
    show_features(view.features)
    show_health(view.findings, view.reassigned, as_json=False)


def show_partitions(views: Iterable[PartitionView], *, as_json: bool) -> None:
    """Print leaders, replicas and those in sync; of the others, why they are not."""
    if as_json:
        print_document([_partition(each) for each in views])
        return
    print_table(
        ("partition", "leader", "epoch", "replicas", "in sync", "not in sync"),
        (
            (
                place_name((each.topic, each.partition)),
                None if each.leader < 0 else each.leader,
                each.leader_epoch,
                ",".join(map(str, each.replicas)),
                ",".join(map(str, each.in_sync)) or None,
                "; ".join(missing.text for missing in each.missing) or None,
            )
            for each in views
        ),
    )


def show_features(features: Sequence[Feature]) -> None:
    """Print the finalized and the supported levels of features."""
    if features:
        print_table(
            ("feature", "finalized", "supported"),
            (
                (
                    feature.name,
                    feature.finalized,
                    "{}-{}".format(*feature.supported) if feature.supported else None,
                )
                for feature in features
            ),
        )


def show_health(findings: Sequence[Finding], reassigned: int, *, as_json: bool) -> None:
    """Print all problems with their remedies, or one line that the cluster is healthy."""
    if as_json:
        print_document(_health(findings, reassigned))
        return
    if not findings and reassigned:
        print(
            "healthy: every partition has a leader and its replicas in sync, but for those that"
            f" are being added: {count_of(reassigned, 'partition')} under reassignment"
        )
        return
    if not findings:
        print("healthy: every partition has a leader and all its replicas in sync")
        return
    print(f"{count_of(len(findings), 'problem')}:")
    print_table(
        ("problem", "where", "detail"),
        ((each.problem.value, each.where, each.detail) for each in findings),
    )
    for problem in dict.fromkeys(each.problem for each in findings):
        remedy = next(each.remedy for each in findings if each.problem is problem)
        print(f"{problem.value}: {remedy}")


def show_versions(versions: Mapping[int, Versions], *, as_json: bool) -> None:
    """Print the APIs; brokers with the same versions of an API share a line."""
    if as_json:
        print_document(
            [
                {"broker": broker, "apis": [_api(key, *span) for key, span in apis.items()]}
                for broker, apis in versions.items()
            ]
        )
        return
    same: dict[tuple[int, tuple[int, int]], list[int]] = {}
    for broker, apis in versions.items():
        for key, span in apis.items():
            same.setdefault((key, span), []).append(broker)
    print_table(
        ("key", "API", "versions", "brokers"),
        (
            (
                str(key),
                api_name(key),
                f"{oldest}-{newest}" if oldest != newest else str(oldest),
                "all" if len(owners) == len(versions) else ",".join(map(str, owners)),
            )
            for (key, (oldest, newest)), owners in sorted(same.items())
        ),
    )


def _feature(feature: Feature) -> dict[str, Any]:
    low, high = feature.supported or (None, None)
    return {
        "name": feature.name,
        "finalized": feature.finalized,
        "min_supported": low,
        "max_supported": high,
    }


def _partition(view: PartitionView) -> dict[str, Any]:
    return {
        "topic": view.topic,
        "partition": view.partition,
        "leader": view.leader,
        "leader_epoch": view.leader_epoch,
        "replicas": list(view.replicas),
        "in_sync": list(view.in_sync),
        "not_in_sync": [
            {
                "broker": each.broker_id,
                "why": each.absence.name.lower(),
                "lag": each.lag,
                "being_added": each.is_added,
                "detail": each.text,
            }
            for each in view.missing
        ],
    }


def _health(findings: Sequence[Finding], reassigned: int) -> dict[str, Any]:
    return {
        "healthy": not findings,
        "reassigned": reassigned,
        "problems": [
            {
                "problem": each.problem.value,
                "where": each.where,
                "detail": each.detail,
                "remedy": each.remedy,
            }
            for each in findings
        ],
    }


def _api(key: int, oldest: int, newest: int) -> dict[str, Any]:
    return {"key": key, "name": api_name(key), "min_version": oldest, "max_version": newest}
