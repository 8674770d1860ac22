"""The quota of changes of topics, counted in partitions made or deleted (KIP-599, S-QTA-4).

A newer request is strict: a change is refused with THROTTLING_QUOTA_EXCEEDED while the client's
bucket is overdrawn. An older one, whose client does not know that code, is permissive: all is done,
and the client is throttled for it. A change may overdraw the bucket however large it is.

Source: `ControllerMutationQuotaManager`, `StrictControllerMutationQuota`,
`PermissiveControllerMutationQuota`.
"""

from collections.abc import Callable

from broker.quotas.accounts import Account, AccountedQuota
from broker.quotas.client_quota import QuotaType
from broker.quotas.rate import Windows
from broker.quotas.token_bucket import TokenBucket
from protocol.errors import ErrorCode, KafkaError


class _Mutations(Account):
    __slots__ = ("bucket",)

    def __init__(self, windows: Windows) -> None:
        super().__init__(windows)
        self.bucket = TokenBucket(windows)

    def tokens(self, bound: float, now_ms: int) -> float | None:
        return self.bucket.tokens(bound, now_ms)


class MutationCharge:
    """The changes of one request, charged to its client's account."""

    __slots__ = ("_bound", "_mutations", "_now_ms", "_strict", "_throttle_ms", "_throttled_at")

    def __init__(
        self, mutations: _Mutations, bound: float, now_ms: Callable[[], int], *, strict: bool
    ) -> None:
        self._mutations = mutations
        self._bound = bound
        self._now_ms = now_ms
        self._strict = strict
        self._throttle_ms = self._throttled_at = 0

    def __call__(self, partitions: int) -> None:
        """Charge for `partitions` that are to be made or deleted.

        Raises KafkaError THROTTLING_QUOTA_EXCEEDED, with nothing counted.
        """
        now_ms = self._now_ms()
        bucket = self._mutations.bucket
        if self._strict:
            self._note(bucket.throttle_ms(self._bound, now_ms), now_ms)
            if self._throttle_ms:
                raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        self._mutations.rate.record(partitions, now_ms)
        bucket.spend(partitions, self._bound, now_ms)
        if not self._strict:
            self._note(bucket.throttle_ms(self._bound, now_ms), now_ms)

    def _note(self, throttle_ms: int, now_ms: int) -> None:
        self._throttle_ms, self._throttled_at = throttle_ms, now_ms

    def throttle_ms(self) -> int:
        """For how long to throttle the client, less the time since the last change."""
        return max(self._throttle_ms - (self._now_ms() - self._throttled_at), 0)


class MutationQuota(AccountedQuota[_Mutations]):
    """The quotas on changes of topics, and the changes of clients. Event loop only."""

    __slots__ = ("_now_ms",)

    type = QuotaType.CONTROLLER_MUTATION

    def __init__(self, windows: Windows, now_ms: Callable[[], int]) -> None:
        super().__init__(lambda: _Mutations(windows))
        self._now_ms = now_ms

    def charge(self, user: str, client_id: str, *, strict: bool) -> MutationCharge | None:
        """The account for a request of this client; None without a quota."""
        found = self._account_of(user, client_id, self._now_ms())
        if found is None:
            return None
        mutations, bound = found
        return MutationCharge(mutations, bound, self._now_ms, strict=strict)
