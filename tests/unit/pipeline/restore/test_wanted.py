"""The topics that a restore makes, of what the archive kept and what has rows."""

import pytest

from pipeline.archive.topics import Topic
from pipeline.restore.restoring import Extent
from pipeline.restore.wanted import (
    WantedTopic,
    configs_of,
    differences_in_words,
    made_in_words,
    targets_of,
    wanted_topics,
)

EVER = str(2**63 - 1)


def rows(topic: str, partition: int) -> Extent:
    return Extent(topic, partition, 1, 0, 0)


def counts(
    found: list[Extent], archived: dict[str, Topic], least: int = 1, **given: str
) -> dict[str, int]:
    wanted = wanted_topics(found, archived, least, given)
    return {name: one.partitions for name, one in wanted.items()}


def test_partitions_are_the_archives_whatever_has_rows() -> None:
    six = {"a": Topic(6, {}), "empty": Topic(3, {})}
    assert counts([rows("a", 0), rows("a", 3)], six) == {"a": 6, "empty": 3}
    assert counts([rows("a", 5)], six) == {"a": 6, "empty": 3}
    assert counts([rows("a", 6)], six) == {"a": 7, "empty": 3}  # added since it was described
    assert counts([rows("a", 3)], {}) == {"a": 4}
    assert counts([rows("a", 0)], six, least=4) == {"a": 6, "empty": 4}
    assert counts([], {}) == {}


def test_configs_are_the_archives_but_for_what_would_lose_rows() -> None:
    had = {
        "cleanup.policy": "compact",
        "max.message.bytes": "5000000",
        "message.timestamp.after.max.ms": EVER,
        "message.timestamp.before.max.ms": "1000",
        "message.timestamp.type": "LogAppendTime",
        "retention.ms": "1000",
    }
    assert configs_of(Topic(1, had), {}) == {
        "cleanup.policy": "compact",
        "max.message.bytes": "5000000",
        "message.timestamp.after.max.ms": EVER,
        "message.timestamp.before.max.ms": EVER,
        "message.timestamp.type": "CreateTime",
        "retention.ms": "-1",
        "retention.bytes": "-1",
    }
    # A broker before Kafka 3.6 does not know all of these, so they are not set without need.
    assert configs_of(None, {}) == {"retention.ms": "-1", "retention.bytes": "-1"}


def test_a_config_that_was_given_counts_and_an_empty_one_is_left_to_the_broker() -> None:
    had = Topic(1, {"segment.ms": "5", "cleanup.policy": "compact"})
    given = {"cleanup.policy": "delete", "segment.ms": "", "retention.ms": "7"}
    assert configs_of(had, given) == {
        "cleanup.policy": "delete",
        "retention.ms": "7",
        "retention.bytes": "-1",
    }


@pytest.mark.parametrize(
    "config",
    [
        "min.insync.replicas",
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
        "remote.storage.enable",
        "local.retention.ms",
        "message.timestamp.difference.max.ms",
    ],
)
def test_what_belongs_to_the_cluster_stays_there(config: str) -> None:
    wanted = wanted_topics([], {"a": Topic(1, {config: "2"})}, 1, {})["a"]
    assert config not in wanted.configs
    assert f"{config} left to the broker (archived: 2)" in made_in_words("a", wanted)


def test_archived_topics_go_by_the_names_of_their_targets() -> None:
    archived = {"a": Topic(2, {"x": "1"}), "b": Topic(3, {"x": "2"})}
    assert targets_of(archived, {"b": "c"}, "r-", None) == {
        "r-a": archived["a"],
        "c": archived["b"],
    }
    assert targets_of({"a": archived["a"]}, {}, "", "t") == {"t": archived["a"]}
    # Several that become one: its keys have most room, and no config is the right one.
    assert targets_of(archived, {}, "r-", "t") == {"r-t": Topic(3, {})}


def test_what_was_made_and_how_it_is_not_as_it_was() -> None:
    had = Topic(6, {"retention.ms": "1000", "cleanup.policy": "compact", "segment.ms": "5"})
    wanted = wanted_topics([], {"a": had}, 1, {"segment.ms": "7"})["a"]
    assert made_in_words("a", wanted) == (
        "made a with 6 partitions, retention.ms=-1 (archived: 1000)"
    )
    unknown = wanted_topics([rows("a", 0)], {}, 1, {})["a"]
    assert made_in_words("a", unknown) == "made a with 1 partition, retention.ms=-1"
    kept = wanted_topics([rows("a", 0)], {}, 1, {"retention.ms": "5"})["a"]
    assert made_in_words("a", kept) == "made a with 1 partition"


def test_a_topic_that_was_there_is_compared() -> None:
    archived = Topic(6, {"cleanup.policy": "compact"})
    wanted = WantedTopic(6, {"cleanup.policy": "compact", "retention.ms": "-1"}, archived)
    same = {"cleanup.policy": "compact", "retention.ms": "-1", "segment.ms": "9"}
    assert differences_in_words("a", wanted, 6, same) is None
    said = differences_in_words("a", wanted, 8, {**same, "cleanup.policy": "delete"})
    assert said is not None
    assert said.startswith("a was there, and has 8 partitions (the archived topic had 6: new")
    assert said.endswith("cleanup.policy=delete (a restore makes it with compact)")
    assert differences_in_words("a", WantedTopic(1, {"x": "1"}), 8, {}) is None
