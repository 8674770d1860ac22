"""Waits for what a request is parked for, or until its client disconnects.

Bytes that the client pipelined stay unread meanwhile. They keep the stream readable, so readability
no longer reveals a disconnect: the connection becomes `PARKED_BLIND`, and the server's sweeper
polls for the disconnect (`Connection.check_parked`).
"""

from typing import Any

import trio

from broker.network.activity import Activity, Ending, State
from broker.world.transport import Stream
from storage.waits import Signal


async def wait_parked(signal: Signal[Any], stream: Stream, activity: Activity) -> None:
    """Wait for the signal. Raises ConnectionResetError when the client disconnects first."""
    scope = trio.CancelScope()
    signal.wake = scope.cancel
    if signal.fired or activity.ending is not None:
        scope.cancel()
    try:
        with scope:
            await _wait_disconnected(stream, activity)
    finally:
        activity.state = State.BUSY
        signal.wake = None
    if not signal.fired:
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
