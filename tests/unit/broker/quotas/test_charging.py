"""The charges of requests, computed by hand, on a clock that a test moves."""

import math
from dataclasses import replace
from typing import Any

import pytest

from broker.quotas.charging import Charging
from broker.quotas.client_quota import QuotaType
from broker.quotas.entity import DEFAULT, Entity
from broker.quotas.quotas import Quotas
from broker.quotas.rate import Windows
from broker.quotas.throttle import Charged, Throttle
from broker.request import RequestContext
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.metadata import MetadataResponse
from tests.support.api_calls import context
from tests.support.manual_clock import ManualClock

WINDOWS = Windows(samples=3, window_ms=1_000)
"""Two seconds' worth at once."""


class Account:
    """The quotas of one client, set by name."""

    def __init__(self, **bounds: float) -> None:
        self.clock = ManualClock()
        self.quotas = Quotas(self.clock, WINDOWS, WINDOWS)
        for key, bound in bounds.items():
            self.quotas.change(Entity(client_id="test"), key, bound)

    @property
    def charging(self) -> Charging:
        assert self.quotas.charging is not None
        return self.quotas.charging

    def request(self, size: int = 0, version: int = 9) -> RequestContext:
        ctx = context(ApiKey.METADATA, version)
        ctx.size = size
        return ctx

    def settle(
        self,
        charged: Charged = Charged.TIME,
        *,
        ctx: RequestContext | None = None,
        size: int = 0,
        worked_s: float = 0.0,
        answered: bool = True,
    ) -> int:
        """The throttle time that the answer tells, held against the throttle; 0 without one."""
        reply = MetadataResponse() if answered else None
        found = self.charging.settle(ctx or self.request(size), charged, reply, worked_s)
        ms = 0 if found is None else self.left_ms(found)
        if reply is not None:
            assert reply.throttle_time_ms == ms
        return ms

    def left_ms(self, throttle: Throttle) -> int:
        return round((throttle.until - self.clock.monotonic()) * 1000)

    def exempt_percent(self) -> float:
        return self.charging.exempt_percent()

    def told(self, kind: QuotaType) -> Any:
        (payer,) = self.charging.statistics()[kind].payers
        return payer


def test_nothing_is_asked_as_long_as_no_quota_is_set() -> None:
    account = Account()
    assert account.quotas.charging is None
    account.quotas.change(Entity(user="u"), "producer_byte_rate", 1)
    assert account.quotas.charging is not None
    account.quotas.change(Entity(user="u"), "producer_byte_rate", None)
    assert account.quotas.charging is None


def test_s_qta_3_produce_is_charged_its_bytes() -> None:
    account = Account(producer_byte_rate=100)
    assert account.settle(Charged.PRODUCE, size=200) == 0
    assert account.settle(Charged.PRODUCE, size=50) == 500
    assert account.settle(Charged.TIME, size=1_000_000) == 0


def test_s_qta_3_other_clients_are_charged_for_themselves() -> None:
    account = Account(producer_byte_rate=100)
    ctx = account.request(10_000)
    ctx.client_id = "other"
    assert account.settle(Charged.PRODUCE, ctx=ctx) == 0
    ctx.client_id = None
    assert account.settle(Charged.PRODUCE, ctx=ctx) == 0
    assert account.settle(Charged.PRODUCE, size=100) == 0


def test_s_qta_3_every_request_is_charged_its_time_up_to_a_window() -> None:
    """In percent: 10 % for two seconds are 0.2 s of work."""
    account = Account(request_percentage=10)
    assert account.settle(worked_s=0.2) == 0
    assert account.settle(worked_s=0.05) == 500
    assert account.settle(Charged.PRODUCE, worked_s=0.01) == 600
    assert account.settle(worked_s=5) == 1_000


def test_s_qta_3_the_longer_of_the_two_holds() -> None:
    account = Account(producer_byte_rate=100, request_percentage=10)
    account.settle(Charged.PRODUCE, size=200, worked_s=0.2)
    assert account.settle(Charged.PRODUCE, size=10, worked_s=0.05) == 500
    assert account.settle(Charged.PRODUCE, size=90, worked_s=0) == 1_000
    assert account.told(QuotaType.REQUEST).left_ms == 500
    assert account.told(QuotaType.PRODUCE).left_ms == 1_000


def test_s_qta_3_a_produce_without_answer_is_charged_bytes_and_no_time() -> None:
    account = Account(producer_byte_rate=100, request_percentage=10)
    assert account.settle(Charged.PRODUCE, size=100, worked_s=5, answered=False) == 0
    assert account.settle(Charged.PRODUCE, size=150, answered=False) == 500
    assert account.settle(worked_s=0.1) == 0
    assert account.exempt_percent() == 250


def test_s_qta_3_requests_between_brokers_are_charged_nothing() -> None:
    account = Account(request_percentage=10)
    assert account.settle(Charged.NOTHING, worked_s=5) == 0
    assert account.settle(worked_s=0.1) == 0
    ctx = account.request()
    account.charging.exempt_fetch(ctx, 5)
    assert account.settle(ctx=ctx, worked_s=5) == 0
    assert account.exempt_percent() == 500


@pytest.mark.parametrize("is_limited", [False, True])
def test_s_qta_3_sending_to_brokers_counts_as_exempt(is_limited: bool) -> None:
    account = Account(**({"request_percentage": 10} if is_limited else {"producer_byte_rate": 1}))
    of_broker, of_follower, plain = account.request(), account.request(), account.request()
    account.settle(Charged.NOTHING, ctx=of_broker)
    account.charging.exempt_fetch(of_follower, 0)
    account.settle(ctx=plain)
    for ctx in (of_broker, of_follower):
        bill = account.charging.sending_bill(ctx)
        assert bill is not None
        bill(1)
    assert account.exempt_percent() == 100
    assert (account.charging.sending_bill(plain) is not None) == is_limited


def test_s_qta_3_a_client_that_has_yet_to_authenticate_is_charged_nothing() -> None:
    account = Account(request_percentage=10)
    ctx = account.request()
    ctx.connection = replace(ctx.connection, is_stranger=True)
    for _ in range(2):
        assert account.charging.sending_bill(ctx) is None
        assert account.settle(ctx=ctx, worked_s=5) == 0
    assert account.settle(worked_s=0.1) == 0
    assert account.exempt_percent() == 0


def test_s_qta_3_a_throttled_fetch_is_not_counted() -> None:
    account = Account(consumer_byte_rate=100, request_percentage=10)
    ctx = account.request()
    assert not account.charging.settle_fetch(ctx, 150, 0.1)
    assert account.settle(ctx=ctx, worked_s=9) == 0  # its time was charged with it
    for _ in range(3):
        ctx = account.request()
        assert account.charging.settle_fetch(ctx, 100, 0)
        assert account.settle(ctx=ctx) == 500
    ctx = account.request()
    assert not account.charging.settle_fetch(ctx, 50, 0)
    assert account.told(QuotaType.FETCH).throttle_ms == 500


def test_s_qta_3_a_fetch_throttled_for_its_time_is_not_counted_either() -> None:
    account = Account(consumer_byte_rate=100, request_percentage=10)
    ctx = account.request()
    assert account.charging.settle_fetch(ctx, 150, 0.3)
    assert account.settle(ctx=ctx) == 1_000
    assert not account.charging.fetch.spend("ANONYMOUS", "test", 200, account.charging.now_ms())


def test_s_qta_3_the_most_that_a_fetch_may_return() -> None:
    account = Account(consumer_byte_rate=100)
    ctx = account.request()
    assert account.charging.most_fetched(ctx, 1 << 20) == 200
    assert account.charging.most_fetched(ctx, 150) == 150
    ctx.client_id = "other"
    assert account.charging.most_fetched(ctx, 1 << 20) == 1 << 20


def test_s_qta_3_what_sending_took_counts_at_the_next_request() -> None:
    account = Account(request_percentage=10)
    account.clock.advance(100_000)
    bill = account.charging.sending_bill(account.request())
    assert bill is not None
    bill(0.3)
    assert account.settle() == 1_000
    account.quotas.change(Entity(client_id="test"), "request_percentage", None)
    account.quotas.change(Entity(client_id="test"), "producer_byte_rate", 1)
    assert account.charging.sending_bill(account.request()) is None


@pytest.mark.parametrize("strict", [True, False])
def test_s_qta_4_changes_are_charged_with_the_request(strict: bool) -> None:
    account = Account(controller_mutation_rate=10, request_percentage=10)
    ctx = account.request(version=5)
    charge = account.charging.charge_changes(ctx, strict_since=5 if strict else 6)
    assert charge is not None
    charge(30)  # full, and overdrawn by nothing
    charge(5)
    if strict:
        with pytest.raises(KafkaError) as refused:
            charge(1)
        assert refused.value.code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    account.clock.advance(0.1)  # the controller takes its time
    account.charging.owe_changes(ctx, charge)
    assert account.settle(ctx=ctx, worked_s=0.2) == 400
    assert account.told(QuotaType.CONTROLLER_MUTATION).tokens == -4
    assert account.told(QuotaType.CONTROLLER_MUTATION).left_ms == 400


def test_s_qta_4_the_time_of_a_change_counts_if_it_is_longer() -> None:
    account = Account(controller_mutation_rate=10, request_percentage=10)
    ctx = account.request(version=5)
    charge = account.charging.charge_changes(ctx, strict_since=6)
    assert charge is not None
    charge(31)
    account.charging.owe_changes(ctx, charge)
    assert account.settle(ctx=ctx, worked_s=0.25) == 500
    assert account.told(QuotaType.REQUEST).left_ms == 500


def test_without_a_quota_of_changes_there_is_no_account() -> None:
    account = Account(producer_byte_rate=1)
    assert account.charging.charge_changes(account.request()) is None
    account.charging.owe_changes(account.request(), None)


def test_a_reply_that_cannot_tell_the_time_is_throttled_all_the_same() -> None:
    account = Account(request_percentage=10)
    throttle = account.charging.settle(account.request(), Charged.TIME, object(), 1)
    assert throttle is not None


def test_connections_that_are_throttled_are_counted_by_kind() -> None:
    account = Account(producer_byte_rate=100)
    reply = MetadataResponse()
    throttle = account.charging.settle(account.request(500), Charged.PRODUCE, reply, 0)
    assert throttle is not None
    with throttle:
        assert account.charging.statistics()[QuotaType.PRODUCE].throttled == 1
    assert account.charging.statistics()[QuotaType.PRODUCE].throttled == 0


def test_s_qta_9_what_a_client_with_a_quota_takes_is_told() -> None:
    account = Account(producer_byte_rate=100)
    account.settle(Charged.PRODUCE, size=100)
    told = account.told(QuotaType.PRODUCE)
    assert (told.payer.client_id, told.bound, told.rate) == ("test", 100, 50)
    assert math.isnan(told.throttle_ms)
    assert told.left_ms == 0
    account.settle(Charged.PRODUCE, size=200)
    account.settle(Charged.PRODUCE, size=200)
    assert account.told(QuotaType.PRODUCE).throttle_ms == pytest.approx(2_000)
    assert account.told(QuotaType.PRODUCE).left_ms == 3_000
    account.clock.advance(100)
    assert math.isnan(account.told(QuotaType.PRODUCE).throttle_ms)
    account.clock.advance(3_600)
    assert account.charging.statistics()[QuotaType.PRODUCE].payers == []


def test_a_client_that_has_no_quota_any_more_is_not_reported() -> None:
    account = Account(producer_byte_rate=100, consumer_byte_rate=5)
    account.settle(Charged.PRODUCE, size=100)
    account.quotas.change(Entity(client_id="test"), "producer_byte_rate", None)
    assert account.charging.statistics()[QuotaType.PRODUCE].payers == []


def test_a_flood_of_client_ids_is_remembered_in_part() -> None:
    account = Account()
    account.quotas.change(Entity(client_id=DEFAULT), "producer_byte_rate", 1)
    ctx = account.request(1)
    for number in range(12_000):
        ctx.client_id = f"{number}"
        account.charging.settle(ctx, Charged.PRODUCE, None, 0)
    assert len(account.charging.statistics()[QuotaType.PRODUCE].payers) == 10_000
