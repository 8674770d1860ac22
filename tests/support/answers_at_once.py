"""`SlowAnswers` for tests of handlers: nothing is slow."""

import trio

from broker.api.in_steps import InSteps
from broker.replication.batch_looker import BatchLooker
from broker.request import Pending
from broker.slow_answers import SlowAnswers
from broker.world.workers import InlineWorkers


class AnswersAtOnce(SlowAnswers):
    """Every answer is there when the handler returns: a `Pending` that is done."""

    started = 0

    def begin(self, work, failed, pending=None):
        self.started += 1
        pending = pending or Pending()
        pending.complete(trio.run(work))
        return pending


def in_steps(clock):
    """`InSteps` whose steps are all made at once."""
    return InSteps(BatchLooker(InlineWorkers()), AnswersAtOnce(), clock)
