"""Times as long as a number of 64 bits can be: no sum of them overflows, and none ever passes."""

import pytest

from config.broker_keys import BROKER_KEYS
from config.definition import ConfigTable, ConfigType
from config.key_building import LONG_MAX
from config.topic_keys import TOPIC_KEYS
from storage.cleaner.planner import Due, LagNotOver, NotDue
from storage.explain.retention import explain_retention
from tests.support.broker_configs import altered_topic
from tests.support.whole_broker import WholeBroker, whole_broker
from tests.whole.compacting import left, log_of, overwritten, put
from tests.whole.plain import fetched, produced_pairs


def longest(table: ConfigTable) -> dict[str, str]:
    """Return each time of 64 bits that is in use, with the greatest value."""
    return {
        key.name: str(LONG_MAX)
        for key in table
        if key.effective and key.type is ConfigType.LONG and key.name.endswith(".ms")
    }


BROKER, TOPIC = longest(BROKER_KEYS), longest(TOPIC_KEYS)
AT_WORK = {"log.retention.check.interval.ms", "log.cleaner.backoff.ms"}
"""The intervals of retention and of the cleaner."""


def test_the_table_has_such_times() -> None:
    assert len(BROKER) >= 18
    assert len(TOPIC) >= 11


@whole_broker(**BROKER)
async def test_a_broker_whose_every_time_is_the_longest(broker: WholeBroker) -> None:
    await broker.create_topic("t", **TOPIC, segment__bytes="1000")
    for number in range(10):
        await produced_pairs(broker.client(), "t-0", (None, f"{number}" * 500))
    await broker.clock.sleep(3000)
    assert len(await fetched(broker.client(), "t-0")) == 10
    await broker.restart()
    assert len(await fetched(broker.client(), "t-0")) == 10
    assert await broker.stop()


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
@whole_broker(**{name: value for name, value in BROKER.items() if name not in AT_WORK})
async def test_a_tombstone_that_is_kept_for_ever(broker: WholeBroker, policy: str) -> None:
    times = TOPIC | {"min.compaction.lag.ms": "0"}
    await broker.create_topic("t", **times, segment__bytes="1000", cleanup__policy=policy)
    client = broker.client()
    await put(client, "t-0", gone="1", kept="1")
    await put(client, "t-0", gone=None, kept="2")
    await overwritten(client, "t-0", 30)
    for _ in range(3):
        await broker.clock.sleep(1000)
        await put(client, "t-0", k0="x" * 800)
        found = await left(client, "t-0")
        assert {(key, value) for _, key, value in found if key in ("gone", "kept")} == {
            ("gone", None),
            ("kept", "2"),
        }
    log = log_of(broker)
    assert broker.server.log_manager.cleaner.why_uncleanable(log) is None
    assert log.log_start_offset == 0
    await broker.restart()
    assert await left(broker.client(), "t-0") == found


@whole_broker()
async def test_records_of_the_last_moment_are_kept_and_explained(broker: WholeBroker) -> None:
    await broker.create_topic("t", **TOPIC, segment__bytes="1000", cleanup__policy="compact,delete")
    for number in range(4):
        await produced_pairs(broker.client(), "t-0", ("k", f"{number}" * 800), at_ms=LONG_MAX)
    await broker.clock.sleep(1000)
    assert len(await fetched(broker.client(), "t-0")) == 4
    log = log_of(broker)
    assert all(one.due_ms is None for one in explain_retention(log, broker.clock.wall_ms()))
    verdict = broker.server.log_manager.cleaner.verdict_of(log)
    assert isinstance(verdict, NotDue)
    assert any(isinstance(one, LagNotOver) and one.until_ms == LONG_MAX for one in verdict.reasons)
    await altered_topic(
        broker,
        "t",
        **{"min.compaction.lag.ms": "0", "max.compaction.lag.ms": str(LONG_MAX - 1)},
    )
    verdict = broker.server.log_manager.cleaner.verdict_of(log)
    assert isinstance(verdict, Due), "by its ratio"
