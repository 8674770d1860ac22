"""A broker for runs over a cluster: its wall clock jumps, and it may lack one guarantee.

    python -m tests.anomalies.cluster_broker [--sabotage KIND] server.properties

starts the broker as `python -m broker` does, after names of it were replaced. The kinds, of which
every broker of a cluster has the same:

    fencing      epochs of leaders, brokers and controllers are not looked at, by anybody
    watermark    a leader's high watermark is its own log end: it waits for no follower
    truncation   a follower keeps what its leader does not have, and its leader does not mind
    isr          a leader never drops a follower that lags from the ISR

`tests.support.replication.run` finds the same without processes, in virtual time.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from tests.anomalies.sabotage import Put
from tests.support.cluster import jumping_clock

_SABOTAGE: Final = "--sabotage"


def without_fencing(put: Put) -> None:
    """A former leader or controller still counts as one."""
    from broker.controller import alterations
    from broker.controller.isr_changes import IsrVerdict
    from broker.membership.controller_fence import ControllerFence
    from broker.replication import copying
    from broker.replication.partition import Partition

    def anybody(*_: Any) -> None:
        pass

    def granted(wish: Any, current: Any, live: Any, version: int) -> IsrVerdict:
        return IsrVerdict(wanted=current._replace(isr=wish.isr))

    put(Partition, "compare_leader_epoch", anybody)
    put(copying, "expect_following", anybody)
    put(ControllerFence, "check_broker_epoch", anybody)
    put(ControllerFence, "admit", anybody)
    put(alterations, "judged", granted)
    put(alterations.Alterations, "_is_of_live_broker", lambda self, request: True)


def without_followers_in_the_watermark(put: Put) -> None:
    """A leader acknowledges and shows a record before any follower has it."""
    from broker.replication.partition import Partition

    def to_the_end(self: Partition) -> bool:
        return self.log.update_high_watermark(self.log.log_end_offset)

    put(Partition, "maybe_increment_high_watermark", to_the_end)


def without_truncation(put: Put) -> None:
    """A former leader keeps the records that nobody else has."""
    from broker.replication import copying
    from broker.replication.partition import Partition
    from broker.replication.truncation import Truncation, TruncationReason

    async def leave(partition: Any, decide: Any, leader_epoch: int) -> Truncation:
        end = partition.log.log_end_offset
        return Truncation(reason=TruncationReason.AGREES, offset=end)

    def agrees(self: Partition, last_fetched_epoch: int, offset: int) -> None:
        pass

    put(copying, "truncate", leave)
    put(Partition, "diverging_epoch", agrees)


def without_shrinking(put: Put) -> None:
    """A follower that fetches no more holds up every acknowledgement."""
    from broker.replication.isr_keeper import IsrKeeper

    async def keep_all(self: IsrKeeper) -> None:
        pass

    put(IsrKeeper, "shrink", keep_all)


SABOTAGES: Final[Mapping[str, Callable[[Put], None]]] = {
    "fencing": without_fencing,
    "watermark": without_followers_in_the_watermark,
    "truncation": without_truncation,
    "isr": without_shrinking,
}


def command(sabotage: str | None = None) -> tuple[str, ...]:
    """Return the command of a `Member`."""
    return ("-m", "tests.anomalies.cluster_broker", *((_SABOTAGE, sabotage) if sabotage else ()))


def _start(arguments: list[str]) -> int:
    from broker.__main__ import main
    from config.form import choose_form

    if arguments[0] == _SABOTAGE:
        SABOTAGES[arguments[1]](setattr)  # In the pure form: compiled code sees no new names.
        arguments = arguments[2:]
    else:
        choose_form()
    jumping_clock.install(setattr, Path(arguments[0]).parent)
    return main(arguments)


if __name__ == "__main__":
    sys.exit(_start(sys.argv[1:]))
