"""The configs of topics are read when a topic is new, and again after each change."""

from contextlib import suppress

from broker.cluster.embedded_store import EmbeddedStore
from broker.membership.topic_settings import TopicSettings
from storage.waits import PAUSE, Work
from tests.support.stores import Ended, open_unreachable_store

CONFIG = b'{"version":1,"config":{"retention.ms":"%d"}}'


async def followed(settings: TopicSettings, work: Work[None], changes: int) -> None:
    """Run `work` while the changes are followed, until there were so many."""
    told: list[str] = []
    before = settings.changed

    def changed(name: str, own: object) -> None:
        before(name, own)  # type: ignore[arg-type]
        told.append(name)
        if len(told) == changes:
            raise Ended

    settings.changed = changed
    await work
    with suppress(Ended):
        await settings.run()


async def test_all_are_read_at_the_start_and_new_ones_when_they_come(store: EmbeddedStore) -> None:
    await store.create("/config/topics/a", CONFIG % 1)
    settings = TopicSettings(store)
    await settings.load()
    assert settings.own("a") == {"retention.ms": "1"}
    await store.create("/config/topics/b", CONFIG % 2)
    assert settings.own("b") == {}
    await settings.learn(["b", "c"])
    assert settings.own("b") == {"retention.ms": "2"}
    assert settings.own("c") == {}
    settings.forget("b")
    assert settings.own("b") == {}


async def test_changes_are_told_and_what_is_the_same_is_not(store: EmbeddedStore) -> None:
    await store.create("/config/topics/a", CONFIG % 1)
    settings = TopicSettings(store)
    told: list[tuple[str, dict[str, str]]] = []
    settings.changed = lambda name, own: told.append((name, dict(own)))
    await settings.load()

    async def change() -> None:
        await store.put("/config/topics/a", CONFIG % 1)
        await store.put("/config/topics/a", CONFIG % 3)

    await followed(settings, change(), 1)
    assert told == [("a", {"retention.ms": "3"})]


async def test_what_cannot_be_read_follows_the_brokers_defaults(store: EmbeddedStore) -> None:
    await store.create("/config/topics/a", b"nonsense")
    settings = TopicSettings(store)
    await settings.load()
    assert settings.own("a") == {}


async def test_a_store_that_does_not_answer_is_asked_again() -> None:
    store = await open_unreachable_store()
    await store.create("/config/topics/a", CONFIG % 1)
    settings = TopicSettings(store)
    await settings.load()
    await store.put("/config/topics/a", CONFIG % 2)
    store.failures = 3
    await settings.learn(["a"])
    assert settings.own("a") == {"retention.ms": "1"}

    async def nothing() -> None:
        await PAUSE

    await followed(settings, nothing(), 1)
    assert settings.own("a") == {"retention.ms": "2"}
