"""The follower's step after a leader's answer for one partition. Pure.

`step_for` reads the answer's code:

A. no error, no diverging epoch: append the records, take over the leader's marks.
B. no error, a diverging epoch: the follower's last record is not the leader's; truncate and fetch
   again (KIP-595; `broker.replication.truncation`).
C. OFFSET_OUT_OF_RANGE: the follower's log ends outside of the leader's; ask where that begins and
   ends (`restart`).
D. FENCED_LEADER_EPOCH for the epoch that the follower still has: a broker leads in a newer one, and
   only the controller knows which. The partition is not fetched until the controller names it.
E. anything else: the leader may not know of its role yet, or has lost it; try again later.

`restart` decides case C. The leader's log

F. ends below the follower's: the follower was leader, or this leader was elected though it lacks
   records. The follower drops its records above the leader's end.
G. begins above the follower's end: the follower was away while the leader deleted its records. It
   drops all records and begins where the leader's log does.
H. covers the follower's end, as it did not when the fetch was answered: the follower continues at
   its log's end.

After `AbstractFetcherThread.processFetchRequest`, `handleOutOfRangeError` and
`fetchOffsetAndTruncate`.
"""

from enum import Enum, auto

from broker.replication.truncation import Truncation, TruncationReason
from protocol.errors import ErrorCode


class FetcherStep(Enum):
    """The step for a leader's answer about a partition."""

    APPEND = auto()
    TRUNCATE = auto()
    RESTART = auto()
    FAIL = auto()
    RETRY = auto()


def step_for(error_code: int, *, diverges: bool) -> FetcherStep:
    """Return the step for an answer with this code (A to E)."""
    if error_code == ErrorCode.NONE:
        return FetcherStep.TRUNCATE if diverges else FetcherStep.APPEND
    if error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
        return FetcherStep.RESTART
    if error_code == ErrorCode.FENCED_LEADER_EPOCH:
        return FetcherStep.FAIL
    return FetcherStep.RETRY


def restart(*, own_end: int, leader_start: int, leader_end: int) -> Truncation:
    """Return the truncation of a follower whose fetch was out of range (F to H)."""
    if leader_end < own_end:  # F
        return Truncation(reason=TruncationReason.DIVERGED, offset=leader_end)
    if leader_start > own_end:  # G
        return Truncation(
            reason=TruncationReason.BELOW_LEADER_START, offset=leader_start, starts_anew=True
        )
    return Truncation(reason=TruncationReason.AGREES, offset=own_end)  # H
