"""The news of a watch are sorted by topic, and only the nodes that they name are read again."""

from dataclasses import replace

import pytest

from broker.cluster.embedded_store import EmbeddedStore
from broker.cluster.image import PartitionImage
from broker.cluster.metadata_store import Create, NodeChange, NodeEvent, Put
from broker.cluster.topic_news import TopicNews, gather
from broker.cluster.tree_reader import TopicReader
from broker.cluster.tree_values import (
    BadValueError,
    encode_config,
    encode_partition_state,
    encode_topic,
)
from storage.waits import at_once
from tests.support.begun import begin

ALONE = PartitionImage(leader=0, leader_epoch=0, replicas=(0,), isr=(0,))
LATER = PartitionImage(leader=0, leader_epoch=7, replicas=(0,), isr=(0,))


def test_news_are_sorted_by_topic_in_the_order_in_which_topics_were_first_told() -> None:
    paths = [
        "/config/topics/b",
        "/brokers/topics/a",
        "/brokers/topics/a/partitions",
        "/brokers/topics/a/partitions/1",
        "/brokers/topics/a/partitions/1/state",
        "/brokers/topics/b/partitions/12/state",
        "/brokers/topics/b/partitions/odd/state",
        "/admin/delete_topics/c",
        "/brokers/topics",
        "/config/topics",
        "/config/brokers/d",
    ]
    news: dict[str, TopicNews] = {}
    work = begin(gather([NodeEvent(path, NodeChange.CHANGED) for path in paths], news))
    assert work.done
    assert work.pauses == len(paths)
    assert list(news.items()) == [
        ("b", TopicNews(config=True, states={12})),
        ("a", TopicNews(assignment=True, states={1})),
        ("c", TopicNews(deletion=True)),
    ]


def test_a_topic_is_gone_when_that_is_the_last_that_is_told_of_its_own_node() -> None:
    own, made, gone = "/brokers/topics/t", NodeChange.CREATED, NodeChange.DELETED
    for told, expected in (([made, gone], True), ([gone, made], False)):
        news: dict[str, TopicNews] = {}
        events = [NodeEvent(own, change) for change in told]
        events.append(NodeEvent(f"{own}/partitions/0/state", gone))
        at_once(gather(events, news))
        assert news == {"t": TopicNews(assignment=True, is_gone=expected, states={0})}


async def test_only_what_is_new_is_read_again(store: EmbeddedStore) -> None:
    state = "/brokers/topics/t/partitions/{}/state"
    await store.apply(
        [
            Create("/brokers/topics/t", encode_topic(b"1" * 16, {0: ALONE, 1: ALONE})),
            Create("/config/topics/t", encode_config({"a": "1"})),
            *(Create(state.format(i), encode_partition_state(ALONE, 1)) for i in (0, 1)),
        ]
    )
    reader = TopicReader(store)
    before = await reader.read("t")
    assert before is not None
    assert before.partitions == {0: ALONE, 1: ALONE}
    assert before.partitions[0] is before.partitions[1]  # what is alike is one value
    await store.apply(
        [
            Put("/brokers/topics/t", encode_topic(b"1" * 16, dict.fromkeys(range(3), ALONE))),
            Put("/config/topics/t", encode_config({"a": "2"})),
            *(Put(state.format(i), encode_partition_state(LATER, 1)) for i in (0, 1)),
        ]
    )
    states = await reader.read("t", before, TopicNews(states={1, 2}))
    assert states is not None
    assert states.partitions == {0: ALONE, 1: LATER}
    assert states.config == {"a": "1"}
    config = await reader.read("t", before, TopicNews(config=True))
    assert config is not None
    assert (config.config, config.partitions) == ({"a": "2"}, before.partitions)
    grown = await reader.read("t", before, TopicNews(assignment=True))
    assert grown is not None
    assert list(grown.partitions) == [0, 1, 2]
    assert grown.partitions[1] is before.partitions[1]
    assert grown.config == {"a": "1"}
    assert (await reader.read("t")) == await TopicReader(store).read("t")
    await store.put("/brokers/topics/t", encode_topic(b"2" * 16, {0: ALONE}))
    other = await reader.read("t", before, TopicNews(assignment=True))
    assert other is not None
    assert (other.partitions, other.config) == ({0: LATER}, {"a": "2"})
    await store.delete(state.format(0))
    await store.put(state.format(1), b"?")
    assert (await reader.read("t", other, TopicNews(states={0}))) is not None
    await store.put("/brokers/topics/t", b"?")
    with pytest.raises(BadValueError):
        await reader.read("t", other, TopicNews(assignment=True))
    assert await reader.read("nothing") is None
    both = replace(ALONE, replicas=(0, 1))
    await store.apply(
        [
            Create("/brokers/topics/u", encode_topic(b"3" * 16, {0: ALONE, 1: both})),
            *(
                Create(f"/brokers/topics/u/partitions/{i}/state", encode_partition_state(LATER, 1))
                for i in (0, 1)
            ),
        ]
    )
    alike = await reader.read("u")
    assert alike is not None
    assert alike.partitions == {0: LATER, 1: replace(LATER, replicas=(0, 1))}
