"""Handlers of the old form, until the last has moved: kinds of reply behind one `async def`."""

from collections.abc import Callable, Coroutine
from inspect import iscoroutinefunction
from types import CoroutineType
from typing import Any, Final

from broker.request import Aside, LargeReply, Pending, RequestContext
from broker.world.driver import Foreign
from storage.waits import Signal

AWAIT_TRIO: Final = frozenset(
    (
        "AlterConfigsHandler",
        "CreatePartitionsHandler",
        "CreateTopicsHandler",
        "DeleteTopicsHandler",
        "DescribeLogDirsHandler",
        "IncrementalAlterConfigsHandler",
        "UpdateFeaturesHandler",
    )
)
"""Handlers that are `async def` and still await trio."""


def is_old(handler: Any) -> bool:
    """Whether a handler has the old form."""
    name = type(handler).__name__
    return name in AWAIT_TRIO or not iscoroutinefunction(handler.__call__)


def adapted(
    handler: Callable[[Any, Any], Any],
) -> Callable[[Any, Any], Coroutine[Any, Any, Any]]:
    """Return `handler` in the form of `storage.waits`."""

    async def work(ctx: RequestContext, request: Any) -> Any:
        reply = handler(ctx, request)
        while True:
            if isinstance(reply, Pending):
                if not reply.done:
                    ctx.released = True
                    signal: Signal[Any] = Signal()
                    reply.notify(signal.fire)
                    try:
                        await signal.parked()
                    except BaseException:
                        reply.abandon()
                        raise
                reply = reply.reply
            elif isinstance(reply, CoroutineType):
                reply = await _foreign(reply, is_long=False)
            elif isinstance(reply, Aside):
                ctx.released = True
                reply = await _foreign(reply.work(), is_long=True)
            elif isinstance(reply, LargeReply):
                ctx.large = True
                return reply.message
            else:
                return reply

    return work


async def _foreign(coroutine: Coroutine[Any, Any, Any], *, is_long: bool) -> Any:
    try:
        return await Foreign(coroutine, is_long=is_long)
    finally:
        coroutine.close()  # has an effect only if it was never begun
