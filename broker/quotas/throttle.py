"""What the connections of a broker know of quotas: what an API is charged, and a throttle."""

from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker.quotas.accounts import AccountedQuota


class Charged(Enum):
    """What a request of an API is charged, beside what its handler charges."""

    TIME = "its time"
    PRODUCE = "its bytes, and its time if it is answered"
    NOTHING = "nothing, because brokers send it"


class Throttle:
    """A connection is not received from for a while, for one kind of quota."""

    __slots__ = ("_quota", "until")

    def __init__(self, quota: "AccountedQuota[Any]", until: float) -> None:
        self.until = until
        """Monotonic seconds."""
        self._quota = quota

    def __enter__(self) -> None:
        """It begins, and ends with the block."""
        self._quota.throttled += 1

    def __exit__(self, *_: object) -> None:
        """It is over."""
        self._quota.throttled -= 1
