"""The facts of quotas that connections know: the charge of an API's requests, and a throttle."""

from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker.quotas.accounts import AccountedQuota


class Charged(Enum):
    """The charge of an API's requests, beside the charges that the handler makes."""

    TIME = "its time"
    PRODUCE = "its bytes, and its time if it is answered"
    NOTHING = "nothing, because brokers send it"


class Throttle:
    """A time in which nothing is received from a connection, for one kind of quota."""

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
