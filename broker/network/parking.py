"""Waiting for a parked reply, and meanwhile for its client's disconnect.

What the client sent ahead is not consumed: it is for later. But as long as such bytes are unread
the stream is readable whatever else happens, so a disconnect behind them does not show; the
connection is `PARKED_BLIND` then, and the server's sweeper asks (`Connection.check_parked`).
"""

import trio

from broker.network.activity import Activity, Ending, State
from broker.request import Pending
from broker.world.transport import Stream


async def wait_parked(pending: Pending, stream: Stream, activity: Activity) -> None:
    """Until the reply is there. Raises ConnectionResetError when the client goes first."""
    scope = trio.CancelScope()
    pending.notify(scope.cancel)
    if activity.ending is not None:
        scope.cancel()
    try:
        with scope:
            await _wait_disconnected(stream, activity)
    finally:
        activity.state = State.BUSY
        pending.abandon()
    if not pending.done:
        activity.end(Ending.GONE)
        raise ConnectionResetError("the client went away while its request was parked")


async def _wait_disconnected(stream: Stream, activity: Activity) -> None:
    while True:
        await stream.wait_readable()
        try:
            if stream.has_ended():
                return
        except BlockingIOError:
            continue
        activity.state = State.PARKED_BLIND
        await trio.sleep_forever()
