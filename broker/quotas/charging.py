"""All quotas of clients, and the charge of a request that is answered (KIP-13, KIP-124, KIP-219).

A request is charged when its answer is ready, before it is encoded (decision 100):

* Produce: the bytes of the request; and its time, unless it has no answer (acks=0).
* Fetch: the bytes of the answer, and its time (`settle_fetch`, which the handler calls, because a
  throttled fetch is answered without data and its bytes are not counted).
* Changes of topics: the partitions (`MutationQuota`), and the time.
* Requests between brokers, and followers' fetches: nothing; metrics count their time as exempt.
* Clients that have yet to prove who they are: nothing, because all of them would be one user.
* All others: their time.

The longest throttle time holds. The answer contains it and goes out at once; then nothing is
received from the connection until the time is over. The time of a request is the work of its
handler, plus encoding and sending, which count at the client's next request; waits are left out. It
is in percent of the one event loop, or of a thread if a thread worked: 100 is all of it.

Source: `KafkaApis`, `RequestHandlerHelper`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from broker.quotas.accounts import AccountedQuota, PayerStatistics
from broker.quotas.client_quota import ClientQuota, QuotaType
from broker.quotas.entity import Entity, user_of
from broker.quotas.keys import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from broker.quotas.mutation_quota import MutationCharge, MutationQuota
from broker.quotas.rate import Rate, Windows
from broker.quotas.throttle import Charged, Throttle
from broker.request import RequestContext
from storage.clock import Clock

PERCENT: Final = 100.0


class Debt(NamedTuple):
    """For how long a client is to be throttled, and for which kind of quota."""

    quota: AccountedQuota[Any]
    throttle_ms: int
    includes_time: bool = False
    """Whether the time of the request is charged already."""
    is_exempt: bool = False
    """Whether the time of the request is charged to nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaStatistics:
    """One kind of quota, for metrics."""

    throttled: int
    """Connections that are throttled now."""
    payers: list[PayerStatistics]


class Charging:
    """The quotas of users and client ids. Event loop only."""

    def __init__(
        self,
        clock: Clock,
        windows: Windows,
        mutation_windows: Windows,
    ) -> None:
        self._clock = clock
        self.produce = ClientQuota(QuotaType.PRODUCE, windows)
        self.fetch = ClientQuota(QuotaType.FETCH, windows)
        self.request = ClientQuota(QuotaType.REQUEST, windows, most_ms=windows.window_ms)
        self.mutation = MutationQuota(mutation_windows, self.now_ms)
        self.exempt = Rate(windows)
        """The time of requests that are charged nothing, in percent."""
        self._by_key: dict[str, ClientQuota | MutationQuota] = {
            PRODUCER_BYTE_RATE.name: self.produce,
            CONSUMER_BYTE_RATE.name: self.fetch,
            REQUEST_PERCENTAGE.name: self.request,
            CONTROLLER_MUTATION_RATE.name: self.mutation,
        }

    def now_ms(self) -> int:
        """Monotonic milliseconds."""
        return int(self._clock.monotonic() * 1000)

    # ---- the quotas that are set

    def change(self, entity: Entity, key: str, bound: float | None) -> None:
        """Set one quota of an entity that is no address; None removes it."""
        self._by_key[key].limits.change(entity, bound)

    @property
    def is_set(self) -> bool:
        """Whether there is any quota."""
        return any(len(quota.limits) for quota in self._by_key.values())

    # ---- the charges of requests

    def settle(
        self, ctx: RequestContext, charged: Charged, reply: Any, worked_s: float
    ) -> Throttle | None:
        """Charge a request whose answer is ready, and write the throttle time into the answer.

        `reply` is None if there is no answer. Returns the throttle of the connection, which begins
        now; None if there is none.
        """
        if ctx.connection.is_stranger:
            return None
        now = self._clock.monotonic()
        debt: Debt | None = ctx.debt
        if debt is None or not debt.includes_time:
            owed = self._charge(
                ctx, charged, worked_s, int(now * 1000), is_answered=reply is not None
            )
            if debt is None or owed.throttle_ms >= debt.throttle_ms:
                debt = ctx.debt = owed
        throttle_ms = debt.throttle_ms
        if not throttle_ms:
            return None
        user, client_id = client_of(ctx)
        debt.quota.note_throttled(user, client_id, throttle_ms, int(now * 1000))
        if hasattr(reply, "throttle_time_ms"):
            reply.throttle_time_ms = throttle_ms
        return Throttle(debt.quota, now + throttle_ms / 1000)

    def _charge(
        self,
        ctx: RequestContext,
        charged: Charged,
        worked_s: float,
        now_ms: int,
        *,
        is_answered: bool,
    ) -> Debt:
        user, client_id = client_of(ctx)
        for_bytes = for_time = 0
        is_exempt = False
        if charged is Charged.PRODUCE:
            for_bytes = self.produce.spend(user, client_id, ctx.size, now_ms)
        if charged is Charged.NOTHING or (charged is Charged.PRODUCE and not is_answered):
            self.exempt.record(worked_s * PERCENT, now_ms)
            is_exempt = True
        else:
            for_time = self.request.spend(user, client_id, worked_s * PERCENT, now_ms)
        if for_bytes > for_time:
            return Debt(self.produce, for_bytes, is_exempt=is_exempt)
        return Debt(self.request, for_time, is_exempt=is_exempt)

    def most_fetched(self, ctx: RequestContext, limit: int) -> int:
        """How many bytes a consumer's fetch may return, `limit` at most.

        A larger answer would be throttled even after a long pause, so the consumer would never get
        it.
        """
        most = self.fetch.most_at_once(*client_of(ctx))
        return limit if most is None else int(min(limit, most))

    def settle_fetch(self, ctx: RequestContext, answer_bytes: int, worked_s: float) -> bool:
        """Charge a consumer's fetch whose answer would have so many bytes.

        Returns whether it must be answered without data, for which no bytes are charged.
        """
        user, client_id = client_of(ctx)
        now_ms = self.now_ms()
        for_time = self.request.spend(user, client_id, worked_s * PERCENT, now_ms)
        for_bytes = self.fetch.spend(user, client_id, answer_bytes, now_ms)
        debt = Debt(self.request, for_time, includes_time=True)
        if for_bytes > for_time:
            debt = Debt(self.fetch, for_bytes, includes_time=True)
        ctx.debt = debt
        if debt.throttle_ms:
            self.fetch.spend_unchecked(user, client_id, -answer_bytes, now_ms)
        return debt.throttle_ms > 0

    def exempt_fetch(self, ctx: RequestContext, worked_s: float) -> None:
        """A follower's fetch is charged nothing."""
        self._exempt(worked_s)
        ctx.debt = Debt(self.request, 0, includes_time=True, is_exempt=True)

    def charge_changes(
        self, ctx: RequestContext, *, strict_since: int = 0
    ) -> MutationCharge | None:
        """The account for a request that changes topics; None without a quota.

        `strict_since`: the first version of its API whose clients know the refusal.
        """
        user, client_id = client_of(ctx)
        return self.mutation.charge(user, client_id, strict=ctx.api_version >= strict_since)

    def owe_changes(self, ctx: RequestContext, charge: MutationCharge | None) -> None:
        """A request that changes topics is done: throttle its client for its changes."""
        if charge is not None:
            ctx.debt = Debt(self.mutation, charge.throttle_ms())

    def sending_bill(self, ctx: RequestContext) -> Callable[[float], None] | None:
        """Return the function that charges the seconds of encoding and sending the answer to a
        request that is settled; None if they are not charged."""
        debt: Debt | None = ctx.debt
        if debt is not None and debt.is_exempt:
            return self._exempt
        if ctx.connection.is_stranger or not len(self.request.limits):
            return None
        return partial(self._bill, *client_of(ctx))

    def _exempt(self, seconds: float) -> None:
        self.exempt.record(seconds * PERCENT, self.now_ms())

    def _bill(self, user: str, client_id: str, seconds: float) -> None:
        self.request.spend_unchecked(user, client_id, seconds * PERCENT, self.now_ms())

    def exempt_percent(self) -> float:
        """The time of requests that are charged nothing."""
        return self.exempt.measured(self.now_ms()).per_second

    def statistics(self) -> dict[QuotaType, QuotaStatistics]:
        """A snapshot."""
        now_ms = self.now_ms()
        return {
            quota.type: QuotaStatistics(throttled=quota.throttled, payers=quota.statistics(now_ms))
            for quota in self._by_key.values()
        }


def client_of(ctx: RequestContext) -> tuple[str, str]:
    """The user and the client id that a request is charged to."""
    return user_of(ctx.connection.principal), ctx.client_id or ""
