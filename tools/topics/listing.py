"""Prints topics: as names, tables, or JSON documents."""

from collections.abc import Mapping, Sequence
from typing import Any

from tools.json_output import print_document
from tools.tables import count_of, number, print_table, size
from tools.topics.survey import PartitionView, TopicView
from tools.topics.trimming import Trim


def show_names(topics: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a line with the name of each topic."""
    if as_json:
        print_document(
            [
                {
                    "topic": name,
                    "partitions": len(topic.partitions),
                    "internal": bool(topic.is_internal),
                }
                for name, topic in sorted(topics.items())
            ]
        )
        return
    for name in sorted(topics):
        print(name)


def show_described(
    found: Sequence[TopicView], configs: Mapping[str, Mapping[str, str]], *, as_json: bool
) -> None:
    """Print everything about each topic; `configs` are the topics' own configs."""
    if as_json:
        print_document([{**_topic(each), "configs": configs[each.name]} for each in found])
        return
    for each in found:
        own = ", ".join(f"{key}={value}" for key, value in sorted(configs[each.name].items()))
        facts = [
            count_of(len(each.partitions), "partition"),
            f"{number(each.records)} offsets",
        ]
        print(f"{each.name}  {', '.join(facts)}" + (f"  {own}" if own else ""))
        print_table(
            ("partition", "leader", "replicas", "in sync", "first", "end", "records", "bytes"),
            (
                (
                    p.number,
                    p.leader,
                    _brokers(p.replicas),
                    _brokers(p.in_sync),
                    p.start,
                    p.end,
                    p.records,
                    size(p.bytes),
                )
                for p in each.partitions
            ),
        )


def show_sizes(found: Sequence[TopicView], *, as_json: bool) -> None:
    """Print a line for each topic, the biggest first."""
    ordered = sorted(found, key=lambda each: (-each.bytes, each.name))
    if as_json:
        print_document([_sizes(each) for each in ordered])
        return
    print_table(
        ("topic", "partitions", "records", "bytes", "with replicas"),
        (
            (
                each.name,
                len(each.partitions),
                each.records,
                size(each.bytes),
                size(each.bytes_everywhere),
            )
            for each in ordered
        ),
    )


def show_trims(trims: Sequence[Trim], *, done: bool, as_json: bool) -> None:
    """Print what was deleted, or what would be."""
    if as_json:
        print_document(
            [
                {
                    "topic": each.place[0],
                    "partition": each.place[1],
                    "start": each.start,
                    "new_start": each.new_start,
                    "end": each.end,
                    "deleted": each.deleted,
                    "dry_run": not done,
                }
                for each in trims
            ]
        )
        return
    print_table(
        ("topic", "partition", "start", "new start", "end", "deleted"),
        ((*each.place, each.start, each.new_start, each.end, each.deleted) for each in trims),
    )
    total = count_of(sum(each.deleted for each in trims), "record")
    print(f"{total} deleted." if done else f"{total} would be deleted; nothing was changed.")


def _brokers(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids))


def _sizes(each: TopicView) -> dict[str, Any]:
    return {
        "topic": each.name,
        "internal": each.is_internal,
        "partitions": len(each.partitions),
        "records": each.records,
        "bytes": each.bytes,
        "bytes_of_all_replicas": each.bytes_everywhere,
    }


def _topic(each: TopicView) -> dict[str, Any]:
    return {**_sizes(each), "partitions": [_partition(one) for one in each.partitions]}


def _partition(each: PartitionView) -> dict[str, Any]:
    return {
        "partition": each.number,
        "leader": each.leader,
        "replicas": list(each.replicas),
        "in_sync": list(each.in_sync),
        "start": each.start,
        "end": each.end,
        "records": each.records,
        "bytes": each.bytes,
    }
