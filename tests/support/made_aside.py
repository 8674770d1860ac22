"""Makes the replies of `Aside`s at once, for tests without a network."""

import trio

from broker.api.in_steps import InSteps
from broker.replication.batch_looker import BatchLooker
from broker.request import Aside, Pending
from broker.world.workers import InlineWorkers


def made(reply):
    """Return the final reply; a `Pending` that is not done stays one."""
    while True:
        if isinstance(reply, Aside):
            reply = trio.run(reply.work)
        elif isinstance(reply, Pending) and reply.done:
            reply = reply.reply
        else:
            return reply


def in_steps(clock):
    """`InSteps` without a child process."""
    return InSteps(BatchLooker(InlineWorkers()), clock)
