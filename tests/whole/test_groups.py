"""Groups over the wire and over time: rebalances, members that fall silent, offsets that expire."""

from random import Random

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.simulation.offsets import GroupLedger
from tests.simulation.readers import SESSION_MS, GroupOffsets, MemberReader
from tests.support.whole_broker import WholeBroker, whole_broker
from tests.whole.kinds_of_requests import join
from tests.whole.plain import produced

KEYS = ("t-0", "t-1", "t-2", "t-3")


class Group:
    """Members of one group, with their last assignments."""

    def __init__(self, broker: WholeBroker) -> None:
        self._broker = broker
        self.ledger = GroupLedger()
        self.assigned: dict[str, tuple[str, ...]] = {}

    def member(self, name: str) -> MemberReader:
        return MemberReader(
            self._broker.client(name),  # type: ignore[arg-type]
            Random(1),
            KEYS,
            lambda keys: self.assigned.update({name: tuple(keys)}),
            group="g",
            who=name,
            ledger=self.ledger,
        )

    def shared(self) -> list[str]:
        """Return the partitions of all members, sorted."""
        return sorted(key for keys in self.assigned.values() for key in keys)


async def polled(reader: MemberReader) -> list[str]:
    found = await reader.poll(0.1, 100)
    return [value for pairs in found.values() for _, value in pairs]


@whole_broker()
async def test_a_second_member_takes_half_and_gives_it_back_when_it_falls_silent(
    broker: WholeBroker,
) -> None:
    await broker.create_topic("t", 4)
    group = Group(broker)
    first, second = group.member("first"), group.member("second")
    await first.poll(0.1, 1)
    assert group.assigned == {"first": KEYS}
    async with broker.together() as together:
        together.start_soon(second.poll, 0.1, 1)
        await broker.clock.sleep(1)
        while len(group.assigned["first"]) != 2:
            await first.poll(0.1, 1)
    assert group.shared() == list(KEYS)
    assert {len(keys) for keys in group.assigned.values()} == {2}
    del group.assigned["second"]  # it is silent from now on
    began = broker.clock.monotonic()
    while group.assigned["first"] != KEYS:
        await first.poll(0.5, 1)
    assert 0 <= broker.clock.monotonic() - began - SESSION_MS / 1000 < 3
    assert group.ledger.findings == []


@whole_broker()
async def test_a_successor_begins_at_the_groups_offsets_also_after_a_kill(
    broker: WholeBroker,
) -> None:
    await broker.create_topic("t", 4)
    group = Group(broker)
    first = group.member("first")
    await first.poll(0.1, 1)
    await produced(broker.client(), "t-1", "a", "b")
    assert await polled(first) == ["a", "b"]
    await first.commit({"t-1": 2})
    await produced(broker.client(), "t-1", "c")
    broker.kill()
    await broker.start()
    second = group.member("second")
    # The broker still takes the first one for a member, and waits for it.
    assert await polled(second) == ["c"]
    assert group.ledger.findings == []


@whole_broker(group__initial__rebalance__delay__ms="60000")
async def test_a_stop_answers_a_member_that_waits_for_a_rebalance(broker: WholeBroker) -> None:
    client = broker.client()
    find = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    await client.call(ApiKey.FIND_COORDINATOR, 4, find)
    await broker.clock.sleep(1)
    await client.send_only(*join())
    await broker.clock.sleep(1)
    broker.server.request_shutdown()
    answer = await client.receive(ApiKey.JOIN_GROUP, 3)
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    await broker.wait_ended()


@whole_broker(offsets__retention__minutes="60", offsets__retention__check__interval__ms="60000")
async def test_offsets_of_a_group_without_members_expire(broker: WholeBroker) -> None:
    await broker.create_topic("t", 4)
    group = Group(broker)
    member = group.member("m")
    await member.poll(0.1, 1)
    await member.commit({"t-0": 7})
    offsets = GroupOffsets(broker.client(), "g", "m", None)  # type: ignore[arg-type]
    await member.leave()
    await broker.clock.sleep(55 * 60)
    assert await offsets.committed(("t-0",)) == {"t-0": 7}
    await broker.clock.sleep(10 * 60)
    assert await offsets.committed(("t-0",)) == {"t-0": 0}
    await broker.restart()
    assert await offsets.committed(("t-0",)) == {"t-0": 0}
