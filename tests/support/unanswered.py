"""A request whose handler's first step has been taken, for tests of who goes on with it."""

from typing import Any

from broker.api.heartbeat import API
from broker.api_facts import Served
from broker.network.request_metrics import RequestMetrics
from broker.network.routes import Route
from broker.network.unanswered import Unanswered
from broker.request import RequestContext
from protocol.errors import ErrorCode
from storage.waits import Work
from tests.support.api_calls import CONNECTION


class _Nobody:
    """A handler that is not called."""

    def __call__(self, ctx: RequestContext, request: Any) -> Work[Any]:
        raise AssertionError

    def error_response(self, ctx: RequestContext, request: Any, code: ErrorCode) -> Any:
        raise AssertionError


def begun(work: Work[Any]) -> Unanswered:
    """A request of which `work` is left, after its first step."""
    route = Route(Served(API, _Nobody()), 4, RequestMetrics("Heartbeat"))
    context = RequestContext(int(API.key), 4, 1, "client", CONNECTION, 0.0, 0)
    made = Unanswered(route, context, 0.0)
    made.work = work
    made.step()
    return made
