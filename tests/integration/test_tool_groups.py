"""`pykafkalog groups` against a real broker."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.support.command_in_process import BrokerTool
from tests.support.topics import make_topic


@pytest.fixture
def filled(bootstrap: str, topic: str, group: str) -> str:
    """A topic with 10 records in each of two partitions; the group has read 4 of each."""
    make_topic(bootstrap, topic, partitions=2, retention_ms="-1")
    producer = Producer({"bootstrap.servers": bootstrap})
    for index in range(20):
        producer.produce(topic, str(index), partition=index % 2, timestamp=1_000_000 + index)
    assert producer.flush(10) == 0
    offsets = [TopicPartition(topic, number, 4) for number in range(2)]
    request = [ConsumerGroupTopicPartitions(group, offsets)]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.alter_consumer_group_offsets(request)[group].result(10)
    return topic


@contextmanager
def member(bootstrap: str, group: str, topic: str) -> Iterator[None]:
    """Somebody reads in the group."""
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "client.id": "reader-7"}
    joined, stop = threading.Event(), threading.Event()
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.subscribe([topic], on_assign=lambda *_: joined.set())

    def read() -> None:
        while not stop.is_set():
            consumer.poll(0.05)
        consumer.close()

    thread = threading.Thread(target=read)
    thread.start()
    try:
        assert joined.wait(20)
        yield
    finally:
        stop.set()
        thread.join()


class Groups(BrokerTool):
    """`pykafkalog groups` on one broker."""

    def committed(self, group: str) -> list[int | None]:
        (found,) = self.objects("--describe", group)
        return [partition["committed"] for partition in found["partitions"]]


@pytest.fixture
def groups(bootstrap: str) -> Groups:
    return Groups("groups", bootstrap)


def test_the_listing_and_the_description_of_groups_have_the_lag(
    groups: Groups, filled: str, group: str
) -> None:
    (line,) = (line for line in groups().splitlines() if line.split()[0] == group)
    assert line.split() == [group, "empty", "classic", "0", "12"]
    assert {"group": group, "lag": 12}.items() <= groups.objects("--describe", group)[0].items()
    described = groups("--describe", group)
    assert described.startswith(f"{group}: empty, 0 members, lag 12\n")
    assert [filled, "1", "4", "10", "6", "-"] in [line.split() for line in described.splitlines()]


def test_resets_of_every_kind(groups: Groups, filled: str, group: str, tmp_path: Path) -> None:
    def reset(*words: str) -> list[int | None]:
        groups("--reset", group, *words)
        return groups.committed(group)

    assert reset("--topic", f"{filled}:1", "--shift-by", "-3") == [4, 1]
    assert reset("--all-topics", "--to", "latest", "--dry-run") == [4, 1]
    csv = groups("--reset", group, "--all-topics", "--to", "current", "--dry-run", "--export")
    assert csv == f"{filled},0,4\n{filled},1,1\n"
    assert reset("--topic", filled, "--to", "latest") == [10, 10]
    (file := tmp_path / "offsets.csv").write_text(csv)
    assert reset("--from-file", str(file)) == [4, 1]
    # Partition 0 has the even milliseconds after 1000 s, 1 has the odd ones.
    assert reset("--all-topics", "--to", "1970-01-01T00:16:40.005") == [3, 2]
    assert reset("--topic", filled, "--to", "7") == [7, 7]
    assert reset("--all-topics", "--by-duration", "1h") == [10, 10]
    assert reset("--all-topics", "--to", "earliest") == [0, 0]


def test_a_group_gets_the_offsets_of_another(groups: Groups, filled: str, group: str) -> None:
    groups("--reset", group, "--topic", f"{filled}:1", "--to", "9")
    other = f"{group}-other"
    shown = groups("--reset", other, "--from-group", group, "--dry-run")
    assert [line.split() for line in shown.splitlines()[1:]] == [
        [filled, "0", "-", "4"],
        [filled, "1", "-", "9"],
    ]
    assert "there is no group" in groups.refusal("--describe", other)
    groups("--reset", other, "--from-group", group, "--topic", f"{filled}:1")
    assert groups.committed(other) == [9]
    groups("--reset", other, "--to-group", group, "--all-topics")
    assert groups.committed(other) == groups.committed(group) == [4, 9]
    for words, said in (
        (("--from-group", f"{group}-nobody"), f"there is no group {group}-nobody"),
        (("--from-group", group, "--to", "1"), "one of --to"),
        (("--from-group", group, "--topic", "other"), "there is no topic other"),
    ):
        assert said in groups.refusal("--reset", other, *words)


def test_groups_are_reset_as_by_kafkas_tool(groups: Groups, filled: str, group: str) -> None:
    kafkas = ("--reset-offsets", "--group", group, "--topic", filled)
    shown = groups(*kafkas, "--to-earliest")
    assert "would be" in shown
    assert groups.committed(group) == [4, 4]
    groups(*kafkas, "--to-earliest", "--execute")
    assert groups.committed(group) == [0, 0]
    groups(*kafkas, "--to-latest", "--execute")
    assert groups.committed(group) == [10, 10]
    groups(*kafkas, "--to-offset", "3", "--execute")
    groups(*kafkas, "--to-current", "--execute")
    assert groups.committed(group) == [3, 3]
    groups(*kafkas, "--to-datetime", "1970-01-01T00:00:00.000", "--execute")
    assert groups.committed(group) == [0, 0]
    assert groups("--describe", "--group", group) == groups("--describe", group)
    everything = groups.objects("--describe", "--all-groups")
    assert group in [each["group"] for each in everything]
    groups("--delete-offsets", "--group", group, "--topic", f"{filled}:1")
    assert groups.committed(group) == [0]
    groups("--delete", "--group", group)
    for words, said in (
        (("--reset-offsets", "--topic", filled, "--to-earliest"), "which --group?"),
        ((*kafkas, "--to-earliest", "--to-group", group), "one of --to"),
        ((*kafkas, "--to-earliest", "--execute", "--dry-run"), "only one of them"),
        (("--delete",), "which group?"),
        (("--delete-offsets", "--topic", filled), "which --group?"),
        (("--group", group), "--group goes with"),
    ):
        assert said in groups.refusal(*words)


def test_an_offset_outside_of_the_log_is_refused_and_nothing_changes(
    groups: Groups, filled: str, group: str
) -> None:
    for words in (("--to", "11"), ("--shift-by", "7"), ("--shift-by", "-5")):
        said = groups.refusal("--reset", group, "--topic", filled, *words)
        assert f"{filled}:0 has offsets 0 to 10, not" in said
    assert groups.committed(group) == [4, 4]


def test_changes_that_need_an_empty_group_name_its_members(
    bootstrap: str, groups: Groups, filled: str, group: str
) -> None:
    with member(bootstrap, group, filled):
        for words in (
            ("--reset", group, "--topic", filled, "--to", "earliest"),
            ("--delete", group),
            ("--delete-offsets", group, "--topic", filled),
        ):
            assert "(reader-7 at 127.0.0.1)" in groups.refusal(*words)
        groups("--reset", group, "--topic", filled, "--to", "earliest", "--dry-run")
        assert groups.committed(group) == [4, 4]
        (found,) = groups.objects("--describe", group)
        assert (found["state"], found["members"]) == ("stable", 1)
        assert found["member_list"][0]["client"] == "reader-7"


def test_offsets_and_groups_are_deleted(groups: Groups, filled: str, group: str) -> None:
    groups("--delete-offsets", group, "--topic", f"{filled}:1", "--dry-run")
    assert groups.committed(group) == [4, 4]
    groups("--delete-offsets", group, "--topic", f"{filled}:1")
    assert groups.committed(group) == [4]
    said = groups.refusal("--delete-offsets", group, "--topic", f"{filled}:1")
    assert f"group {group} has committed nothing in {filled}:1" in said
    assert groups("--delete", group) == f"Deleted group {group}.\n"
    assert f"there is no group {group}" in groups.refusal("--delete", group)
