"""The topics that a restore makes: with the partitions that the archive says, and its configs.

Some configs are not taken over as they were, and a restore says which:

* `OPEN`: rows are as old as they are, so limits on age or size would delete or refuse them, and
  LogAppendTime would take their times.
* `OF_CLUSTER`: they belong to the brokers, which are others now.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pipeline.archive.topics import Topic
from pipeline.restore.restoring import Extent

OPEN: Final = {
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": str(2**63 - 1),
}
_ALWAYS: Final = ("retention.ms", "retention.bytes")
"""The configs of `OPEN` that every version of Kafka knows."""
OF_CLUSTER: Final = re.compile(
    r"min\.insync\.replicas|.*\.replication\.throttled\.replicas|remote\..*|local\.retention\..*"
    r"|message\.timestamp\.difference\.max\.ms"
)


@dataclass(frozen=True, slots=True)
class WantedTopic:
    """A target topic as the restore makes it."""

    partitions: int
    configs: Mapping[str, str]
    archived: Topic | None = None
    given: frozenset[str] = field(default_factory=frozenset)
    """Names of configs that the user has chosen."""


def wanted_topics(
    rows: Iterable[Extent], archived: Mapping[str, Topic], least: int, given: Mapping[str, str]
) -> dict[str, WantedTopic]:
    """Return the topics to make, by name: those with rows, and all that are `archived`.

    `least` is the least number of partitions; `given` are configs of all topics, where an empty
    value leaves a config to the broker.
    """
    counts = {name: max(least, topic.partitions) for name, topic in archived.items()}
    for one in rows:
        counts[one.topic] = max(counts.get(one.topic, least), one.partition + 1)
    return {
        name: WantedTopic(
            count, configs_of(archived.get(name), given), archived.get(name), frozenset(given)
        )
        for name, count in sorted(counts.items())
    }


def configs_of(archived: Topic | None, given: Mapping[str, str]) -> dict[str, str]:
    """Return the configs to make a topic with."""
    had = {} if archived is None else archived.configs
    configs = {name: value for name, value in had.items() if not OF_CLUSTER.fullmatch(name)}
    configs |= {name: OPEN[name] for name in OPEN if name in had or name in _ALWAYS}
    return {name: value for name, value in (configs | dict(given)).items() if value}


def targets_of(
    archived: Mapping[str, Topic], renamed: Mapping[str, str], prefix: str, topic: str | None
) -> dict[str, Topic]:
    """Return archived topics by the names of their targets; `topic` is the target of all.

    Configs of several topics that become one are not taken over.
    """
    found: dict[str, Topic] = {}
    for name, one in archived.items():
        target = target_of(topic or name, renamed, prefix)
        other = found.get(target)
        if other is not None:
            one = Topic(max(other.partitions, one.partitions), {})
        found[target] = one
    return found


def target_of(name: str, renamed: Mapping[str, str], prefix: str) -> str:
    """Return the name of a target topic."""
    return renamed.get(name, prefix + name)


def made_in_words(name: str, wanted: WantedTopic) -> str:
    """Return a sentence about a topic that was made, and how it differs from the archived one."""
    was = {} if wanted.archived is None else wanted.archived.configs
    others = [
        (f"{config}={now}" if now else f"{config} left to the broker") + f" (archived: {value})"
        for config, value in was.items()
        if (now := wanted.configs.get(config)) != value and config not in wanted.given
    ]
    if "retention.ms" not in (*was, *wanted.given):
        others.insert(0, f"retention.ms={wanted.configs['retention.ms']}")
    return f"made {name} with {', '.join([_partitions(wanted.partitions), *others])}"


def differences_in_words(
    name: str, wanted: WantedTopic, partitions: int, configs: Mapping[str, str]
) -> str | None:
    """Return a sentence if a topic that was there is not as a restore makes it; None if it is."""
    if wanted.archived is None:
        return None
    others = [
        f"{config}={configs.get(config)} (a restore makes it with {value})"
        for config, value in wanted.configs.items()
        if configs.get(config) != value
    ]
    if partitions != wanted.partitions:
        others.insert(
            0,
            f"{_partitions(partitions)} (the archived topic had {wanted.archived.partitions}: new"
            " records of a key may go to another one than the restored)",
        )
    return f"{name} was there, and has {', '.join(others)}" if others else None


def _partitions(count: int) -> str:
    return f"{count} partition{'s' if count > 1 else ''}"
