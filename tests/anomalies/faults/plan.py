"""Faults of a bad network, and how often they come: a plan, from which each request draws one.

    DROP_ANSWER   the broker carries the request out; its answer is swallowed, the connection closed
    LATE          the client's connection is closed; the request reaches the broker later, on
                  another connection, when the client has tried again or given up
    REPLAY        the request is passed on, and once more later, on another connection
    DELAY         the request is passed on later; what follows on the connection waits behind it
    CUT           the connection is closed before the request is passed on

The `proxy` carries them out between processes, `tests.simulation.wire` in a simulation.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Final

from protocol.api_keys import ApiKey
from tests.anomalies.faults.frames import RequestFrame

_TRANSACTIONAL: Final = (
    ApiKey.PRODUCE,
    ApiKey.END_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.INIT_PRODUCER_ID,
)


class Fault(Enum):
    """One thing that may happen to a request on its way."""

    DROP_ANSWER = "drop answer"
    LATE = "late"
    REPLAY = "replay"
    DELAY = "delay"
    CUT = "cut"


def is_protected(request: RequestFrame) -> bool:
    """Whether the protocol promises that a late repetition of the request does no harm.

    Version 2 transactions: always. Before, only sequence numbers and epochs protect, that is
    Produce: an EndTxn or TxnOffsetCommit of the last transaction looks like one of the next
    (KIP-890 came for that). A late InitProducerId fences whoever came after it: no harm to data.
    """
    return request.is_version_2 or request.key in (ApiKey.PRODUCE, ApiKey.INIT_PRODUCER_ID)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPlan:
    """The chance of each fault. A request meets one at most."""

    chances: Mapping[Fault, float] = field(default_factory=dict)
    keys: tuple[ApiKey, ...] = _TRANSACTIONAL
    """Requests of other kinds are left alone, but for DELAY and CUT."""
    may_repeat: Callable[[RequestFrame], bool] = is_protected
    """Whether a request may be LATE or REPLAYed."""
    longest_s: float = 2.0
    """The longest delay, and the longest time until a late or repeated request arrives."""

    def draw(self, request: RequestFrame, random: Random) -> Fault | None:
        """Draw the fault that this request meets, or None."""
        dice = random.random()
        for fault, chance in self.chances.items():
            dice -= chance
            if dice < 0:
                return fault if self._fits(fault, request) else None
        return None

    def _fits(self, fault: Fault, request: RequestFrame) -> bool:
        if fault in (Fault.DELAY, Fault.CUT):
            return True
        if fault is Fault.DROP_ANSWER:
            return request.key in self.keys
        return request.key in self.keys and self.may_repeat(request)


NO_FAULTS: Final = FaultPlan()
