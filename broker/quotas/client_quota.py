"""One kind of quota that is a rate: bytes produced, bytes fetched, time of requests (S-QTA-3).

`spend` records a client's use even if it is over its quota, and returns for how long to throttle
it: if O is the rate over a window W and T the quota, (O - T) / T * W brings O down to T. Clients
without a quota are not recorded.

Source: `ClientQuotaManager`, `ClientRequestQuotaManager`.
"""

from enum import Enum

from broker.quotas.accounts import Account, AccountedQuota
from broker.quotas.rate import MOST_MS, Windows


class QuotaType(Enum):
    """Kafka's types of quotas, by the names of their metrics."""

    PRODUCE = "Produce"
    FETCH = "Fetch"
    REQUEST = "Request"
    CONTROLLER_MUTATION = "ControllerMutation"


class ClientQuota(AccountedQuota[Account]):
    """The quotas of one kind, and the use that clients make of them. Event loop only."""

    __slots__ = ("_most_ms", "_windows", "type")

    def __init__(self, kind: QuotaType, windows: Windows, *, most_ms: int = MOST_MS) -> None:
        """`most_ms`: the longest throttle time."""
        super().__init__(lambda: Account(windows))
        self.type = kind
        self._windows = windows
        self._most_ms = most_ms

    def spend(self, user: str, client_id: str, value: float, now_ms: int) -> int:
        """Record `value`; return for how many milliseconds to throttle, 0 if not at all."""
        found = self._account_of(user, client_id, now_ms)
        if found is None:
            return 0
        account, bound = found
        account.rate.record(value, now_ms)
        return min(account.rate.measured(now_ms).over(bound), self._most_ms)

    def spend_unchecked(self, user: str, client_id: str, value: float, now_ms: int) -> None:
        """Record `value`, which counts at the next `spend`; a negative one takes back a use."""
        found = self._account_of(user, client_id, now_ms)
        if found is not None:
            found[0].rate.record(value, now_ms)

    def most_at_once(self, user: str, client_id: str) -> float | None:
        """The most that is not throttled after a long pause; None without a quota."""
        bound = self.limits.bound(self.limits.payer(user, client_id))
        return None if bound is None else bound * self._windows.full_s
