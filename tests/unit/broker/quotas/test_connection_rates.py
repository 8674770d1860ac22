"""How fast connections may be made (KIP-612)."""

from broker.quotas.connection_rates import ConnectionRates
from broker.quotas.creation_rates import CreationRates
from broker.quotas.entity import DEFAULT, Entity
from broker.quotas.quotas import Quotas
from broker.quotas.rate import Windows
from tests.support.manual_clock import ManualClock

WINDOWS = Windows(samples=3, window_ms=1_000)
"""Two seconds' worth may come at once."""


class Rates:
    def __init__(self, **limits: object) -> None:
        self.clock = ManualClock()
        self.rates = ConnectionRates(self.clock, WINDOWS)
        self.rates.reconfigure(CreationRates(**limits))  # type: ignore[arg-type]

    def waits(self, count: int, listener: str = "A") -> list[int]:
        return [self.rates.wait_ms(listener) for _ in range(count)]

    def refusals(self, count: int, ip: str, listener: str = "A") -> list[bool]:
        return [self.rates.refuse_ms(listener, ip) > 0 for _ in range(count)]


def test_s_qta_5_a_connection_beyond_the_rate_waits_a_window_at_most() -> None:
    rates = Rates(total=10)
    assert rates.waits(21) == [0] * 20 + [100]
    assert rates.waits(1) == [200]
    rates.waits(50)
    assert rates.waits(1) == [1_000]
    rates.clock.advance(10)
    assert rates.waits(20) == [0] * 20


def test_s_qta_5_a_listener_has_a_limit_of_its_own() -> None:
    rates = Rates(by_listener={"A": 1})
    assert rates.waits(3, "A") == [0, 0, 1_000]
    assert rates.waits(30, "B") == [0] * 30


def test_s_qta_5_the_listener_between_brokers_has_only_its_own() -> None:
    rates = Rates(total=1, by_listener={"IN": 5}, protected="IN")
    assert rates.waits(11, "IN") == [0] * 10 + [200]
    assert rates.waits(3, "A") == [0, 0, 1_000]  # and takes nothing of the broker's


def test_limits_change_at_once() -> None:
    rates = Rates(total=1)
    assert rates.waits(3) == [0, 0, 1_000]
    rates.rates.reconfigure(CreationRates(total=100))
    assert rates.waits(1) == [0]


def test_s_qta_5_an_address_beyond_its_rate_is_refused_and_counts_for_nobody() -> None:
    rates = Rates(total=10)
    rates.rates.change("10.0.0.1", 1)
    assert rates.refusals(5, "10.0.0.1") == [False, False, True, True, True]
    assert rates.refusals(5, "10.0.0.2") == [False] * 5
    rates.waits(10)
    for _ in range(50):  # accepted, counted and refused
        rates.waits(1)
        assert rates.refusals(1, "10.0.0.1") == [True]
    assert rates.waits(1) == [0]
    statistics = rates.rates.statistics()
    assert statistics.ip_throttled == 53
    assert statistics.by_ip == {"10.0.0.1": 1.0}
    assert statistics.ip_throttle_ms["A"] > 0
    rates.clock.advance(10)
    assert rates.refusals(2, "10.0.0.1") == [False] * 2


def test_s_qta_5_addresses_without_a_quota_have_the_default_one() -> None:
    rates = Rates()
    rates.rates.change(DEFAULT, 1)
    rates.rates.change("10.0.0.1", 100)
    assert rates.refusals(3, "10.0.0.9") == [False, False, True]
    assert rates.refusals(3, "10.0.0.8") == [False, False, True]  # each its own
    assert rates.refusals(50, "10.0.0.1") == [False] * 50
    rates.rates.change("10.0.0.1", None)
    assert rates.refusals(1, "10.0.0.1") == [True]
    rates.rates.change(DEFAULT, None)
    assert rates.refusals(30, "10.0.0.9") == [False] * 30
    assert not rates.rates.limits_addresses


def test_one_address_is_written_in_several_ways() -> None:
    rates = Rates()
    rates.rates.change("::ffff:10.0.0.1", 1)
    assert rates.refusals(3, "10.0.0.1") == [False, False, True]


def test_what_listeners_did_is_told() -> None:
    rates = Rates(total=10, by_listener={"A": 5})
    rates.waits(12, "A")
    rates.waits(2, "B")
    statistics = rates.rates.statistics()
    assert statistics.total == 7
    assert statistics.by_listener == {"A": 6.0, "B": 1.0}
    assert statistics.listener_throttle_ms["A"] == 300  # the average of 200 and 400
    assert statistics.listener_throttle_ms["B"] != statistics.listener_throttle_ms["B"]


def test_limits_of_the_config_hold_before_there_is_a_quota_and_after_the_last_one() -> None:
    quotas = Quotas(ManualClock(), WINDOWS, WINDOWS)
    quotas.limit_connections(CreationRates(total=1))
    assert quotas.accepting is not None
    assert [quotas.accepting.wait_ms("A") for _ in range(3)] == [0, 0, 1_000]
    quotas.change(Entity(ip="10.0.0.1"), "connection_creation_rate", 1)
    quotas.limit_connections(CreationRates())
    assert quotas.accepting is not None
    assert quotas.accepting.wait_ms("A") == 0
    quotas.change(Entity(ip="10.0.0.1"), "connection_creation_rate", None)
    assert quotas.accepting is None
