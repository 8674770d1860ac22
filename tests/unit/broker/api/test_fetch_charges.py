"""Fetch: the seconds that a client with a quota is charged."""

import pytest

from broker.api import fetch
from broker.quotas.entity import DEFAULT, Entity
from broker.quotas.quotas import Quotas
from storage.waits import Pause
from tests.support.begun import Begun, slept
from tests.support.broker_bench import context, fetch_handler
from tests.support.fetch_bench import Asked, partitions_of, through

JUDGED_S = 0.25
"""The time to ask whether the client may read a topic."""
OTHERS_S = 2
"""The time that others take if the request lets them run."""


class AmongOthers(Begun):
    """Work that lets others run whenever it may."""

    def __init__(self, work, advance):
        self.advance = advance
        super().__init__(work)

    def _serve(self, wait):
        if isinstance(wait, Pause):
            self.advance(OTHERS_S)
        return super()._serve(wait)


@pytest.mark.parametrize("version", [4, 12, 13])
@pytest.mark.parametrize("is_many", [False, True])
def test_s_qta_3_neither_waits_nor_the_turns_of_others_are_charged(version, is_many, monkeypatch):
    monkeypatch.setattr(fetch, "MANY", 2 if is_many else 10)
    asked = Asked(partitions=4)
    bench = asked.bench
    quotas = Quotas(bench.clock)
    quotas.change(Entity(client_id=DEFAULT), "request_percentage", 1)
    charged = []

    def settle(ctx, size, worked_s):
        charged.append(worked_s)
        return False

    def allowed(*_):
        bench.clock.advance(JUDGED_S)
        return True

    monkeypatch.setattr(quotas.charging, "settle_fetch", settle)
    handler = fetch_handler(
        bench.replicas, asked.sessions, bench.clock, quotas=quotas, allowed=allowed
    )
    asked.raw(dict.fromkeys(range(4), 0), version, max_wait=60_000)  # for its message
    before = bench.clock.monotonic()
    begun = AmongOthers(handler(context(version), asked.message), bench.advance)
    if not slept(begun, bench.advance).done:  # it is parked
        bench.advance(60)
    answer = through(begun.reply, version)
    assert len(partitions_of(answer)) == 4
    assert bench.clock.monotonic() - before >= 60
    assert charged == [JUDGED_S]
