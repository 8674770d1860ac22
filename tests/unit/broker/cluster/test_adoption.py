"""Log directories of another broker become topics of this one."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from broker.cluster.adoption import (
    FIRST_PRODUCER_ID,
    Adoption,
    ConfigOrigin,
    TopicAction,
    scan,
    take_over,
)
from broker.cluster.embedded_store import EmbeddedStore
from broker.cluster.image import TopicImage
from broker.cluster.kraft_log import METADATA_DIRECTORY, read_kraft_metadata
from broker.cluster.producer_ids import ProducerIdAllocator, StoredBlocks
from broker.cluster.tree_reader import read_topics
from broker.offline.adopt import adopt
from config.broker_config import BrokerConfig
from config.definition import ConfigError
from protocol.errors import ProtocolError
from protocol.messages.metadata_frames import decode_record
from protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from protocol.records.builder import build_batch
from protocol.schema import Api, Message
from protocol.types import uuid_to_text
from storage.errors import DirectoryLocked
from storage.log_dir import LogDir, MetaProperties, write_meta_properties
from storage.os_filesystem import OsFileSystem
from storage.waits import Work, at_once
from tests.support.calls import Calls
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.stores import new_uuid, open_store

CONFIG = BrokerConfig.parse({"broker.id": "3", "log.dirs": "/a,/b"})
ID, OTHER_ID = b"i" * 16, b"o" * 16
KINDS: Mapping[Api, int] = {
    TopicRecord: 2,
    PartitionRecord: 3,
    ConfigRecord: 4,
    RemoveTopicRecord: 9,
    ProducerIdsRecord: 15,
    BeginTransactionRecord: 23,
    EndTransactionRecord: 24,
    AbortTransactionRecord: 25,
}


def directories(*names: str, topic_id: bytes | None = ID) -> FaultyFileSystem:
    fs = FaultyFileSystem()
    fs.make_dirs("/a")
    fs.make_dirs("/b")
    for name in names:
        add(fs, name, topic_id)
    return fs


def add(fs: FaultyFileSystem, name: str, topic_id: bytes | None) -> None:
    fs.make_dirs(name)
    if topic_id is not None:
        text = f"version: 0\ntopic_id: {uuid_to_text(topic_id)}\n"
        fs.write_atomic(f"{name}/partition.metadata", (text.encode(),))


def frame(api: Api, version: int = 0, **fields: object) -> bytes:
    value: Message = api(**fields)
    return bytes([1, KINDS[api], version]) + api.codec(version).build(value)


def batch(base_offset: int, *values: bytes) -> bytes:
    rows = [(1, None, value, []) for value in values]
    return build_batch(rows, base_offset=base_offset, leader_epoch=1)


def kraft(fs: FaultyFileSystem, name: str, *batches: bytes) -> None:
    fs.make_dirs(f"/a/{METADATA_DIRECTORY}")
    fs.write_atomic(f"/a/{METADATA_DIRECTORY}/{name}", batches)


def taken_over(
    store: EmbeddedStore, fs: FaultyFileSystem, *paths: str, config: BrokerConfig = CONFIG
) -> Work[Adoption]:
    return take_over(store, fs, paths, config, 3, new_uuid=new_uuid)


def run(
    fs: FaultyFileSystem, store: EmbeddedStore | None = None
) -> tuple[dict[str, TopicAction], dict[str, TopicImage]]:
    """Actions by topic, and what the store holds then."""

    async def scenario() -> tuple[dict[str, TopicAction], dict[str, TopicImage]]:
        opened = store or await open_store()
        verdicts = (await taken_over(opened, fs, "/a", "/b")).topics
        topics = await read_topics(opened)
        return {v.name: v.action for v in verdicts}, {topic.name: topic for topic in topics}

    return at_once(scenario())


def test_directories_become_topics_with_their_own_ids() -> None:
    fs = directories("/a/t-0", "/b/t-2", "/a/__consumer_offsets-49", topic_id=ID)
    fs.make_dirs("/a/gone-0.0123456789abcdef0123456789abcdef-delete")
    actions, topics = run(fs)
    assert actions == {"t": TopicAction.ADOPTED, "__consumer_offsets": TopicAction.ADOPTED}
    assert topics["t"].topic_id == ID
    assert list(topics["t"].partitions) == [0, 1, 2]
    assert topics["t"].partitions[1].replicas == (3,)
    assert len(topics["__consumer_offsets"].partitions) == 50
    assert topics["__consumer_offsets"].config["cleanup.policy"] == "compact"


def test_adopting_twice_changes_nothing(store: EmbeddedStore) -> None:
    fs = directories("/a/t-0", "/a/t-1")
    _, first = run(fs, store)
    actions, second = run(fs, store)
    assert actions == {"t": TopicAction.KNOWN}
    assert first == second


def test_partitions_that_came_later_are_added(store: EmbeddedStore) -> None:
    fs = directories("/a/t-0")
    run(fs, store)
    add(fs, "/b/t-2", ID)
    actions, topics = run(fs, store)
    assert actions == {"t": TopicAction.GROWN}
    assert list(topics["t"].partitions) == [0, 1, 2]


@pytest.mark.parametrize(
    ("missing", "action"), [(10_000, TopicAction.ADOPTED), (10_001, TopicAction.CONFLICT)]
)
def test_a_number_in_a_name_makes_no_more_partitions_than_a_request_may(
    missing: int, action: TopicAction
) -> None:
    actions, topics = run(directories("/a/t-0", f"/a/t-{missing + 1}", "/b/u-0"))
    assert actions == {"t": action, "u": TopicAction.ADOPTED}
    assert len(topics["t"].partitions if "t" in topics else ()) in (0, missing + 2)


def test_a_date_in_a_name_is_no_count(store: EmbeddedStore) -> None:
    fs = directories("/a/backup-20260101", "/b/t-0")
    assert run(fs, store)[0] == {"backup": TopicAction.CONFLICT, "t": TopicAction.ADOPTED}
    add(fs, "/a/t-20260101", ID)  # beside the topic that the store knows now
    actions, topics = run(fs, store)
    assert actions == {"backup": TopicAction.CONFLICT, "t": TopicAction.CONFLICT}
    assert list(topics["t"].partitions) == [0]


def test_a_number_in_kafkas_metadata_log_is_no_count_either() -> None:
    fs = directories("/a/t-0")
    partition = frame(PartitionRecord, partition_id=2**31 - 1, topic_id=ID)
    kraft(fs, f"{0:020}.log", batch(0, frame(TopicRecord, name="t", topic_id=ID), partition))
    assert run(fs)[0] == {"t": TopicAction.CONFLICT}


def test_a_directory_of_foreign_files_is_no_partition(caplog: pytest.LogCaptureFixture) -> None:
    fs = directories("/a/t-0")
    fs.make_dirs("/a/backup-2026")
    fs.write_atomic("/a/backup-2026/notes.txt", (b"mine",))
    fs.make_dirs("/a/u-0")  # a crash may have left it empty
    assert set(run(fs)[0]) == {"t", "u"}
    assert "Leaving /a/backup-2026 alone" in caplog.text


def test_a_topic_that_was_made_again_elsewhere_replaces_the_one_that_is_known(
    store: EmbeddedStore,
) -> None:
    fs = directories("/a/t-0", "/a/t-1")
    run(fs, store)
    fs.remove_tree("/a/t-1")
    add(fs, "/a/t-0", OTHER_ID)
    actions, topics = run(fs, store)
    assert actions == {"t": TopicAction.REPLACED}
    assert topics["t"].topic_id == OTHER_ID
    assert list(topics["t"].partitions) == [0]


def test_conflicts_are_left_out_and_the_rest_is_taken() -> None:
    fs = directories("/a/good-0", "/a/twice-0", "/b/twice-0", "/a/mixed-0")
    add(fs, "/a/mixed-1", OTHER_ID)
    actions, topics = run(fs)
    assert actions == {
        "good": TopicAction.ADOPTED,
        "mixed": TopicAction.CONFLICT,
        "twice": TopicAction.CONFLICT,
    }
    assert set(topics) == {"good"}


async def test_kraft_tells_partitions_configs_and_ids(store: EmbeddedStore) -> None:
    fs = directories("/a/t-1")
    add(fs, "/a/old-0", None)
    kraft(
        fs,
        "00000000000000000000.log",
        batch(
            0,
            frame(TopicRecord, name="t", topic_id=ID),
            frame(TopicRecord, name="old", topic_id=OTHER_ID),
            *(frame(PartitionRecord, 1, partition_id=i, topic_id=ID) for i in range(4)),
            frame(PartitionRecord, 2, partition_id=0, topic_id=OTHER_ID),
            frame(ConfigRecord, resource_type=2, resource_name="t", name="retention.ms", value="9"),
            frame(ConfigRecord, resource_type=2, resource_name="t", name="new.key", value="1"),
            frame(ConfigRecord, resource_type=4, resource_name="t", name="broker", value="1"),
            frame(ConfigRecord, resource_type=2, resource_name="t", name="flush.ms", value="7"),
            frame(ConfigRecord, resource_type=2, resource_name="t", name="flush.ms", value=None),
        ),
    )
    adoption = await taken_over(store, fs, "/a")
    verdicts = {v.name: v for v in adoption.topics}
    topic = verdicts["t"].topic
    assert topic is not None
    assert dict(topic.config) == {"retention.ms": "9"}
    assert [text.split()[0] for text in verdicts["t"].dropped_configs] == ["new.key=1"]
    assert verdicts["t"].config_source is ConfigOrigin.KRAFT
    assert (verdicts["t"].found, verdicts["t"].missing) == ((1,), (0, 2, 3))
    assert verdicts["old"].topic is not None
    assert verdicts["old"].topic.topic_id == OTHER_ID


async def test_a_metadata_log_in_a_directory_of_its_own_is_read(store: EmbeddedStore) -> None:
    fs = directories("/a/t-0")
    topic = frame(TopicRecord, name="t", topic_id=ID)
    own = frame(ConfigRecord, resource_type=2, resource_name="t", name="retention.ms", value="5")
    fs.make_dirs(f"/meta/{METADATA_DIRECTORY}")
    log = f"/meta/{METADATA_DIRECTORY}/00000000000000000000.log"
    fs.write_atomic(log, (batch(0, topic, own),))
    config = BrokerConfig.parse({"broker.id": "3", "metadata.log.dir": "/meta"})
    (verdict,) = (await taken_over(store, fs, "/a", config=config)).topics
    assert verdict.config_source is ConfigOrigin.KRAFT
    assert verdict.topic is not None
    assert dict(verdict.topic.config) == {"retention.ms": "5"}


def test_the_newest_whole_snapshot_counts_and_what_follows_it() -> None:
    fs = directories()
    whole = batch(0, frame(TopicRecord, name="t", topic_id=ID), frame(ProducerIdsRecord))
    kraft(fs, "00000000000000000010-0000000001.checkpoint", whole)
    kraft(fs, "00000000000000000020-0000000001.checkpoint", whole[:-1])
    later = batch(
        9,
        frame(RemoveTopicRecord, topic_id=ID),  # offset 9: the snapshot's business
        frame(ProducerIdsRecord, next_producer_id=2000),
    )
    torn = batch(11, frame(RemoveTopicRecord, topic_id=ID))
    kraft(fs, "00000000000000000009.log", later, torn[:-3])
    metadata = read_kraft_metadata(fs, "/a")
    assert metadata is not None
    assert metadata.next_producer_id == 2000
    assert metadata.topic("t") is not None


@pytest.mark.parametrize(
    ("end", "stands"),
    [(EndTransactionRecord, True), (AbortTransactionRecord, False), (None, False)],
)
def test_metadata_transactions_count_when_they_end(end: Api | None, stands: bool) -> None:
    fs = directories()
    records = [frame(BeginTransactionRecord), frame(TopicRecord, name="t", topic_id=ID)]
    kraft(fs, "00000000000000000000.log", batch(0, *records, *([frame(end)] if end else [])))
    metadata = read_kraft_metadata(fs, "/a")
    assert metadata is not None
    assert (metadata.topic("t") is not None) is stands


def test_metadata_records_of_other_kinds_are_passed_over_and_bad_ones_refused() -> None:
    assert decode_record(bytes([1, 17, 0, 99])) is None
    for bad in (b"", b"\x02\x02\x00", bytes([1, 2, 9, 0]), b"\xff" * 9):
        with pytest.raises(ProtocolError):
            decode_record(bad)


def test_directories_are_looked_through_in_a_thread(store: EmbeddedStore) -> None:
    fs = directories("/a/t-0")
    work = Calls(taken_over(store, fs, "/a"))
    assert work.call is not None
    assert (work.call.work, work.call.values) == (scan, (fs, ("/a",), None))
    assert [verdict.name for verdict in work.finish().topics] == ["t"]


async def test_producer_ids_go_on_where_kafka_never_comes(store: EmbeddedStore) -> None:
    await taken_over(store, directories("/a/t-0"), "/a")
    assert await ProducerIdAllocator(StoredBlocks(store, 3)).take() == FIRST_PRODUCER_ID
    await taken_over(store, directories("/a/t-0", "/a/u-0"), "/a")
    assert await ProducerIdAllocator(StoredBlocks(store, 3)).take() == FIRST_PRODUCER_ID + 1000


# ---- the command


def disk(root: str, names: tuple[str, ...]) -> tuple[OsFileSystem, BrokerConfig]:
    fs = OsFileSystem()
    for name in names:
        fs.make_dirs(f"{root}/{name}")
        fs.open(f"{root}/{name}/{0:020}.log", create=True).close()
    return fs, BrokerConfig.parse({"log.dirs": root})


@pytest.mark.parametrize("version", [0, 1])
def test_adopt_keeps_the_identity_of_the_directory(tmp_path: object, version: int) -> None:
    root = str(tmp_path)
    fs, config = disk(root, ("t-0",))
    directory_id = uuid_to_text(ID) if version else None
    meta = MetaProperties(
        version=version, node_id=7, cluster_id="c" * 22, directory_id=directory_id
    )
    write_meta_properties(fs, root, meta)
    before = fs.read_bytes(f"{root}/meta.properties")
    summary = at_once(adopt(config, fs))
    assert (summary["broker_id"], summary["cluster_id"]) == (7, "c" * 22)
    assert fs.read_bytes(f"{root}/meta.properties") == before
    assert json.loads(json.dumps(summary))["topics"][0]["action"] == "adopted"


def test_a_dry_run_leaves_nothing_but_the_lock_file(tmp_path: object) -> None:
    root = str(tmp_path)
    fs, config = disk(root, ("t-0", "t-1"))

    async def dry() -> list[str]:
        summary = await adopt(config, fs, dry_run=True)
        return [topic["action"] for topic in summary["topics"]]

    assert at_once(dry()) == ["adopted"]
    assert sorted(fs.list_dir(root)) == [".lock", "t-0", "t-1"]
    at_once(adopt(config, fs))
    assert at_once(dry()) == ["known already"]


def test_adopt_refuses_what_is_not_kafkas_before_it_writes(tmp_path: Path) -> None:
    empty, foreign, kafkas = (str(tmp_path / name) for name in ("empty", "foreign", "kafkas"))
    fs, _ = disk(kafkas, ("t-0",))
    fs.make_dirs(empty)
    fs.make_dirs(f"{foreign}/node-20")
    before = sorted(tmp_path.rglob("*"))
    for paths, said in (
        ((kafkas, foreign), f"{foreign} is a directory that is not Kafka's"),
        ((empty,), "nothing to adopt there"),
        ((f"{kafkas}/t-0",), "is a partition's directory"),
    ):
        with pytest.raises(ConfigError, match=said):
            at_once(adopt(BrokerConfig.parse({"log.dirs": ",".join(paths)}), fs))
    assert sorted(tmp_path.rglob("*")) == before
    summary = at_once(adopt(BrokerConfig.parse({"log.dirs": f"{empty},{kafkas}"}), fs))
    assert [topic["action"] for topic in summary["topics"]] == ["adopted"]


def test_adopt_refuses_a_directory_in_use_and_one_that_is_not_there(tmp_path: object) -> None:
    root = str(tmp_path)
    fs, config = disk(root, ("t-0",))
    lock = LogDir(fs, root)
    lock.lock()
    with pytest.raises(DirectoryLocked):
        at_once(adopt(config, fs))
    lock.unlock()
    with pytest.raises(ConfigError):
        at_once(adopt(BrokerConfig.parse({"log.dirs": f"{root}/nowhere"}), fs))
