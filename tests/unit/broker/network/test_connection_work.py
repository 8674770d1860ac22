"""The work of a connection ends at every kind of wait of every kind of request, or goes on."""

from collections.abc import Callable
from typing import Any, Final

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from broker.api import create_topics, fetch, list_groups, produce
from broker.api_facts import Api, Served
from broker.network.connection_work import ConnectionWork
from broker.network.endings import ClientGone, ConnectionEnded
from broker.network.request_metrics import RequestMetrics
from broker.network.routes import Route
from broker.world.readiness import BROKEN
from storage.waits import PAUSE, Signal, Work, call, compute, together
from tests.support.gated_workers import GatedWorkers
from tests.support.loop_scene import RDHUP, TURN, Scene

QUERIES: Final = {"query": list_groups.API, "query in workers": fetch.API}
CHANGES: Final = {"change": create_topics.API, "change in workers": produce.API}
REQUESTS: Final = {"none": None, **QUERIES, **CHANGES}
WAITS: Final = [
    "signal",
    "parked",
    "deadline",
    "pauses",
    "thread call",
    "two thread calls",
    "child call",
    "together",
]
ENDS: Final = ["end", "reset", "cut"]


class _Handler:
    """A handler that is not called."""

    def __call__(self, ctx: Any, request: Any) -> Any:
        raise AssertionError

    def error_response(self, ctx: Any, request: Any, code: Any) -> Any:
        raise AssertionError


def route(api: Api | None) -> Route | None:
    if api is None:
        return None
    return Route(Served(api, _Handler()), api.versions[1], RequestMetrics(api.key.name))


class Gates(GatedWorkers):
    """Child processes wait at their gates, too."""

    async def in_process(self, work: Callable[..., Any], *values: Any) -> Any:
        return await self.in_thread(work, *values)


class Waiting:
    """Work that waits at a wait of its kind until `go_on`, and then for what never comes."""

    def __init__(self, kind: str, scene: Scene) -> None:
        self.kind = kind
        self.scene = scene
        self.gates = Gates()
        scene.loop._driver._workers = self.gates
        self.signal: Signal[None] = Signal()
        self.seen: list[Any] = []

    async def at_its_wait(self) -> None:
        kind, signal = self.kind, self.signal
        if kind == "signal":
            await signal
        elif kind == "parked":
            await signal.parked()
        elif kind == "deadline":
            assert await signal.within(1000)
        elif kind == "pauses":
            while not signal.fired:
                self.scene.clock.advance(TURN)
                await PAUSE
        elif kind == "thread call":
            assert await call(int, "7") == 7
        elif kind == "two thread calls":
            assert await call(int, "7") == 7
            assert await call(int, "8") == 8
        elif kind == "child call":
            assert await compute(int, "7") == 7
        else:
            await together(self._wait(), self._wait())

    async def _wait(self) -> None:
        await compute(int)

    async def work(self) -> None:
        try:
            await self.at_its_wait()
            self.seen.append("went on")
            await Signal[None]()
        except BaseException as error:
            self.seen.append(type(error))
            raise

    async def go_on(self) -> None:
        self.signal.fire()
        for _ in range(2):
            self.gates.open()
            await settle(self.kind)


async def settle(kind: str) -> None:
    if kind == "pauses":  # never blocked
        for _ in range(20):
            await trio.lowlevel.checkpoint()
    else:
        await wait_all_tasks_blocked()


def expected(request: str, kind: str, how: str) -> list[Any]:
    """The events that the work sees; "now" stands before those that come after its wait."""
    error = ClientGone if how == "reset" else ConnectionEnded
    is_query, is_change = request in QUERIES, request in CHANGES
    is_meant = {
        "end": not is_change,
        "reset": is_query,
        "cut": True,
    }[how]
    if "thread" in kind:
        return ["now", "went on", error] if is_meant else ["now", "went on"]
    if is_meant or kind == "parked":
        return [error, "now"]
    return ["now", "went on"]


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("kind", WAITS)
@pytest.mark.parametrize("request_kind", REQUESTS)
async def test_work_ends_where_it_may(scene: Scene, request_kind: str, kind: str, how: str) -> None:
    waiting = Waiting(kind, scene)
    served = scene.serve(1, waiting.work())
    served.route = route(REQUESTS[request_kind])
    await settle(kind)
    assert waiting.seen == []
    if how == "reset":
        scene.readiness.tell(1, RDHUP | BROKEN)
    else:
        for _ in range(2):
            getattr(served, how)()
    await settle(kind)
    waiting.seen.append("now")
    await waiting.go_on()
    assert waiting.seen == expected(request_kind, kind, how)
    is_over = waiting.seen[-1] in (ClientGone, ConnectionEnded) or waiting.seen[-1] == "now"
    assert (("ended", 1) in scene.happened) is is_over
    assert scene.loop.elsewhere == 0


@pytest.mark.parametrize("how", ["end", "reset"])
@pytest.mark.parametrize("request_kind", CHANGES)
async def test_a_change_that_is_ended_ends_when_it_is_parked(
    scene: Scene, request_kind: str, how: str
) -> None:
    change: Signal[None] = Signal()

    async def work() -> None:
        await change
        scene.happened.append("changed")
        try:
            await Signal[None]().parked()
        except ConnectionEnded as error:
            scene.happened.append(type(error))
            raise

    served = scene.serve(1, work())
    served.route = route(REQUESTS[request_kind])
    await wait_all_tasks_blocked()
    getattr(served, how)()
    await wait_all_tasks_blocked()
    assert scene.happened == []
    change.fire()
    await wait_all_tasks_blocked()
    error = ClientGone if how == "reset" else ConnectionEnded
    assert scene.happened == ["changed", error, ("ended", 1)]


async def test_an_end_becomes_a_cut(scene: Scene) -> None:
    waiting = Waiting("signal", scene)
    served = scene.serve(1, waiting.work())
    served.route = route(produce.API)
    await wait_all_tasks_blocked()
    served.end()
    await wait_all_tasks_blocked()
    assert waiting.seen == []
    served.cut()
    await wait_all_tasks_blocked()
    assert waiting.seen == [ConnectionEnded]


async def test_work_made_of_calls_can_be_ended_between_them(scene: Scene) -> None:
    waiting = Waiting("signal", scene)
    made: list[int] = []

    async def work() -> None:
        for number in range(100):
            await call(made.append, number)
            await PAUSE

    served = await scene.served(1, work())
    served.end()
    waiting.gates.open()
    await wait_all_tasks_blocked()
    assert made == [0]
    assert scene.happened == [("ended", 1)]


@pytest.mark.parametrize("request_kind", REQUESTS)
async def test_calls_of_producers_and_consumers_are_made_by_workers(
    scene: Scene, request_kind: str
) -> None:
    waiting = Waiting("thread call", scene)
    served = scene.serve(1, waiting.work())
    served.route = route(REQUESTS[request_kind])
    await wait_all_tasks_blocked()
    is_with_worker = "in workers" in request_kind
    busy = scene.pool.statistics().busy
    assert (busy, scene.loop.elsewhere) == ((1, 0) if is_with_worker else (0, 1))
    await waiting.go_on()
    assert waiting.seen == ["went on"]
    assert (served.started is not None) is is_with_worker


# ---- work beside that of the connection


def beside(scene: Scene, work: Callable[[], Work[None]], api: Api) -> ConnectionWork:
    found = route(api)
    assert found is not None
    return scene.loop.run_beside(lambda served: work(), found, scene.client, lambda: "beside")


@pytest.mark.parametrize("request_kind", [*QUERIES, *CHANGES])
@pytest.mark.parametrize("kind", WAITS)
async def test_a_reset_of_its_connection_ends_work_beside_as_the_connections_own(
    scene: Scene, request_kind: str, kind: str
) -> None:
    api = REQUESTS[request_kind]
    assert api is not None
    waiting = Waiting(kind, scene)
    connection = scene.serve(1, scene.receiving(1))
    connection.request_work = beside(scene, waiting.work, api)
    await settle(kind)
    connection.reset()
    await settle(kind)
    waiting.seen.append("now")
    await waiting.go_on()
    assert waiting.seen == expected(request_kind, kind, "reset")
    assert ("ended", 1) not in scene.happened


@pytest.mark.parametrize("api", [list_groups.API, create_topics.API])
async def test_work_beside_takes_its_first_step_before_it_can_be_ended(
    scene: Scene, api: Api
) -> None:
    """So a `finally` in it runs."""

    async def work() -> None:
        scene.happened.append("began")
        try:
            await Signal[None]().parked()
        finally:
            scene.happened.append("ended")

    beside(scene, work, api).reset()
    await wait_all_tasks_blocked()
    assert scene.happened == ["began", "ended"]


async def test_works_beside_are_many(scene: Scene) -> None:
    signals: list[Signal[None]] = []

    async def work() -> None:
        signals.append(Signal())
        await signals[-1]
        scene.happened.append("done")

    for _ in range(3):
        beside(scene, work, produce.API)
    await wait_all_tasks_blocked()
    assert len(scene.loop._works) == 3
    for signal in signals:
        signal.fire()
    await wait_all_tasks_blocked()
    assert scene.happened == ["done"] * 3
    assert not scene.loop._works


# ---- the end of the loop


@pytest.mark.parametrize("in_pool", [False, True])
@pytest.mark.parametrize("is_beside", [False, True])
@pytest.mark.parametrize("kind", WAITS)
@pytest.mark.parametrize("request_kind", [*QUERIES, *CHANGES])
@pytest.mark.usefixtures("loop")
async def test_at_the_end_of_the_loop_calls_in_threads_are_completed_and_the_rest_is_ended(
    request_kind: str, kind: str, is_beside: bool, in_pool: bool
) -> None:
    """A call that the work makes after the one under way is completed, too."""
    api = REQUESTS[request_kind]
    assert api is not None
    scene = Scene()
    waiting = Waiting(kind, scene)
    async with trio.open_nursery() as workers, trio.open_nursery() as nursery:
        if in_pool:
            workers.start_soon(scene.pool.run)
        nursery.start_soon(scene.loop.run)
        await wait_all_tasks_blocked()
        if is_beside:
            beside(scene, waiting.work, api)
        else:
            scene.serve(1, waiting.work()).route = route(api)
        await settle(kind)
        is_queued = "in workers" in request_kind and "thread" in kind and not in_pool
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            if is_queued:
                scene.channel.drop()
            await settle(kind)
            waiting.seen.append("now")
            await waiting.go_on()
        workers.cancel_scope.cancel()
    if is_queued:
        assert waiting.seen == [ConnectionEnded, "now"]
    else:
        assert waiting.seen == expected(request_kind, kind, "cut")
    assert not scene.loop._works


@pytest.mark.usefixtures("loop")
async def test_work_that_has_not_begun_at_the_end_of_the_loop_begins_and_ends() -> None:
    scene = Scene()
    waiting = Waiting("signal", scene)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(scene.loop.run)
        await wait_all_tasks_blocked()
        beside(scene, waiting.work, produce.API)
        nursery.cancel_scope.cancel()
    assert waiting.seen == [ConnectionEnded]
