"""`SlowAnswers` for tests of handlers: nothing is slow."""

import trio

from broker.request import Pending
from broker.slow_answers import SlowAnswers


class AnswersAtOnce(SlowAnswers):
    """Every answer is there when the handler returns: a `Pending` that is done."""

    def begin(self, work, failed, pending=None):
        pending = pending or Pending()
        pending.complete(trio.run(work))
        return pending
