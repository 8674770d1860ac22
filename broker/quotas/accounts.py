"""A quota whose clients have accounts: the rate of each, and its throttle times (S-QTA-7)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from broker.quotas.limits import Payer, QuotaLimits
from broker.quotas.rate import Rate, Windows
from broker.quotas.throttling import ThrottleTimes
from broker.quotas.usages import Usages


@dataclass(frozen=True, slots=True, kw_only=True)
class PayerStatistics:
    """One client with a quota, for metrics."""

    payer: Payer
    bound: float
    """The quota."""
    rate: float
    """The client's rate per second."""
    throttle_ms: float
    """The average of its throttle times lately; NaN if it was not throttled."""
    left_ms: int
    """For how long it is throttled from now on; 0 if it is not."""
    tokens: float | None = None
    """The credits that are left, if the quota has credits."""


class Account:
    """The use that one client makes of its quota."""

    __slots__ = ("rate", "throttle")

    def __init__(self, windows: Windows) -> None:
        self.rate = Rate(windows)
        self.throttle = ThrottleTimes()

    def tokens(self, bound: float, now_ms: int) -> float | None:
        """The credits that are left; None if the quota has no credits."""
        return None


AccountT = TypeVar("AccountT", bound=Account)


class AccountedQuota(Generic[AccountT]):
    """The limits of one kind of quota, and the accounts of clients with one. Event loop only."""

    __slots__ = ("_accounts", "limits", "throttled")

    def __init__(self, new: Callable[[], AccountT]) -> None:
        """`new` makes an account."""
        self.limits = QuotaLimits()
        self.throttled = 0
        """Connections that are throttled now."""
        self._accounts: Usages[AccountT] = Usages(new)

    def _account_of(self, user: str, client_id: str, now_ms: int) -> tuple[AccountT, float] | None:
        """The account and the bound of an active client; None without a quota."""
        payer = self.limits.payer(user, client_id)
        bound = self.limits.bound(payer)
        return None if bound is None else (self._accounts.of(payer, now_ms), bound)

    def note_throttled(self, user: str, client_id: str, throttle_ms: int, now_ms: int) -> None:
        """A connection of this client is throttled for so long from now on."""
        found = self._account_of(user, client_id, now_ms)
        if found is not None:
            found[0].throttle.note(throttle_ms, now_ms)

    def statistics(self, now_ms: int) -> list[PayerStatistics]:
        """The clients that have a quota and used it in the last hour."""
        found = []
        for payer, account in self._accounts.remembered(now_ms):
            bound = self.limits.bound(payer)
            if bound is not None:
                found.append(
                    PayerStatistics(
                        payer=payer,
                        bound=bound,
                        rate=account.rate.measured(now_ms).per_second,
                        throttle_ms=account.throttle.average(now_ms),
                        left_ms=account.throttle.left_ms(now_ms),
                        tokens=account.tokens(bound, now_ms),
                    )
                )
        return found
