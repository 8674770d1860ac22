"""The one loop of all connections: it gives each connection that is ready a turn of its own.

A connection is work (`storage.waits`), not a task. It waits for its stream (`Ready`), for a signal,
or for a call; it awaits PAUSE where others may run, which they do when its turn is over. The loop
polls the transport's `Readiness` for connections whose streams are ready (bytes to receive, or room
to send), and resumes each by itself. A signal that fires puts its connection into the line of due
connections. So a request that makes no call costs no task switch, a parked request costs no task,
and one place knows which connections are ready.

The loop repeats this round until no connection is ready:

1. Each connection whose stream is ready has one turn, so a client that sends much does not delay
   the others. The replies of connections that one poll reported leave together (`WITH_OTHERS`): the
   first reply wakes the clients' process, and the others find it awake, which saves a quarter of
   the time of a small request.
2. Up to `DUE_PER_ROUND` due connections have a turn, first come first served; their replies, too,
   leave together.
3. One connection whose turn was interrupted has a turn, because clients that send little must not
   wait for several clients that saturate the broker.

Before the turn of a connection whose last turn took long or was interrupted, the loop polls again
and serves the connections that became ready meanwhile, for `LONG_S` in all. So a client that sends
little waits for the rest of one long turn, not for a long turn of each client that saturates the
broker; and a crowd of small clients leaves the saturating ones at least half of the time.

After `TURN_S` of rounds trio's other tasks have their turn. When no connection is ready, trio waits
for the readiness; but if the last wait of trio was short, the loop first polls a few more times.

Handler workers make the calls in threads that requests of producers and consumers wait for
(`Route.in_workers`, `RequestChannel`). The driver serves all other waits of a connection (other
calls, `sleep`, `together`) in a task.

While nobody takes a connection's bytes, they stay in its stream: at the first event that its work
does not want, the loop stops listening for all but the end of the stream and a reset. The end of
the stream ends no work but a handshake, because a client that sends no more may still listen; its
requests are carried out before the connection reads the end.
`broker.network.connection_work` has the rules of what ends a connection.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final, final

import trio

from broker.fairness import CLIENT, Client
from broker.network.connection_state import CONNECTION_TURN_S
from broker.network.connection_work import ConnectionWork, DueLine, is_thread_call
from broker.network.endings import ClientGone, ConnectionEnded
from broker.network.request_channel import RequestChannel
from broker.network.routes import Route
from broker.world.driver import Driver
from broker.world.loop_watch import NOTED_S
from broker.world.readiness import BROKEN, HANGUP, ONCE, READABLE, Readiness, Ready
from broker.world.transport import Stream
from broker.world.turns import PAUSES, TURN_OVER, TURN_S
from storage.waits import PAUSE, Until, Wait, Work

DUE_PER_ROUND: Final = 16
GROUP: Final = 16
"""The most connections whose replies leave together."""
GROUP_S: Final = 0.0005
"""The most seconds that a reply waits for others, not counting the request that is then in work."""
LONG_S: Final = 0.0002
"""Seconds; a longer turn is long: other connections should not wait for it."""
LOOKS: Final = 256
LOOKS_S: Final = 0.00006
"""The most seconds and the most polls of the readiness before trio waits for it.

A client on the same machine needs 15 to 50 µs for its next request; to fall asleep and to be woken
costs the loop 20 to 40 µs, the most if the processor falls asleep too.
"""
LOOKS_PAY_S: Final = 0.0001
"""Seconds; after a shorter wait of trio, polling would have found the client's next request."""
INTERRUPTED_PER_TURN: Final = round(TURN_S / CONNECTION_TURN_S)
_TOLD_AT_ONCE: Final = 64
_ONLY_HANGUP: Final = HANGUP | ONCE

_set_client: Final = CLIENT.set


@final
class WithOthers(Wait):
    """Replies are ready to be sent: they leave with those of other connections in this round."""

    __slots__ = ()


WITH_OTHERS: Final = WithOthers()


class ConnectionLoop:
    """Serves the connections of one broker. Event loop only."""

    def __init__(
        self,
        readiness: Readiness,
        driver: Driver,
        channel: RequestChannel,
        monotonic: Callable[[], float],
    ) -> None:
        """`driver` serves the waits that are not the loop's, and has the watch on long turns.

        Handler workers make the calls of producers and consumers, which they take from `channel`.
        """
        self._readiness = readiness
        self._driver = driver
        self._channel = channel
        self._monotonic = monotonic
        self._nursery: trio.Nursery | None = None
        self._works: dict[int, ConnectionWork] = {}
        """Works by the key of their stream; those of `run_beside` by negative numbers."""
        self._last_beside = -1
        self._told: deque[tuple[int, int]] = deque()
        """(key, events) that the readiness has reported and the loop has not served yet."""
        self._line = DueLine()
        self._interrupted: deque[ConnectionWork] = deque()
        """Works whose turn was over while they had more to do."""
        self._together: deque[ConnectionWork] = deque()
        """Works whose replies are about to leave."""
        self.gathers = False
        """Whether replies should wait for those of other connections: `await WITH_OTHERS`."""
        self._has_ended = False
        self._looks_pay = False
        self._idle_since = 0.0
        self.elsewhere = 0
        """How many tasks serve waits now."""
        self._round = 0

    def serve(
        self,
        stream: Stream,
        coroutine: Work[None],
        client: Client,
        name: Callable[[], str],
        ended: Callable[[], object],
    ) -> ConnectionWork:
        """Run `coroutine`; at its end, or that of the loop, close `stream` and call `ended`.

        `name` names the connection for the log if it blocks the loop.
        """
        work = ConnectionWork(self._line, stream, client, name, ended)
        work.coroutine = coroutine
        work.mask = READABLE.mask
        work.key = self._readiness.add(stream.source, work.mask)
        return self._begin(work)

    def run_beside(
        self,
        coroutine_of: Callable[[ConnectionWork], Work[None]],
        route: Route,
        client: Client,
        name: Callable[[], str],
    ) -> ConnectionWork:
        """Run a request's work beside that of its connection.

        `coroutine_of` makes it; the work can be ended only after its first step.
        """
        work = ConnectionWork(self._line, None, client, name, bool)
        work.coroutine = coroutine_of(work)
        work.wait = None
        work.route = route
        self._last_beside -= 1
        work.key = self._last_beside
        return self._begin(work)

    def _begin(self, work: ConnectionWork) -> ConnectionWork:
        self._works[work.key] = work
        if self._has_ended:
            self._end(work)
        else:
            work.wake()
        return work

    async def run(self) -> None:
        """Serve until cancelled; then end all works, after their calls in threads.

        Two tasks run the rounds, never both at once (`DueLine.at_work`): this one when a stream is
        ready, `_run_when_due` when a work is due.
        """
        try:
            async with trio.open_nursery() as self._nursery:
                self._nursery.start_soon(self._run_when_due)
                while True:
                    await self._readiness.wait()
                    while self._line.at_work:
                        await trio.lowlevel.checkpoint()
                    await self._run_rounds()
        finally:
            self._nursery = None
            with trio.CancelScope(shield=True):
                while self._works:
                    await self._end_after_calls(next(iter(self._works.values())))
            self._has_ended = True

    async def _end_after_calls(self, work: ConnectionWork) -> None:
        work.cut()
        while work.key in self._works and _must_go_on(work):
            while not work.is_due:  # its call waits for a worker, or is made
                await self._line.asleep.park()
            self._resume(work, self._monotonic())
            wait = work.wait
            if is_thread_call(wait):
                try:
                    work.answered(await self._driver.serve(wait), None)
                except Exception as error:  # noqa: BLE001 - whatever it is, it is for the work
                    work.answered(None, error)
        if work.key in self._works:
            self._end(work)

    def _end(self, work: ConnectionWork) -> None:
        work.error = work.to_throw or ConnectionEnded()
        self._resume(work, self._monotonic())
        if work.key in self._works:  # it waits for something again
            work.coroutine.close()
            self._finish(work)

    async def _run_when_due(self) -> None:
        while True:
            if not self._line.works:
                await self._line.asleep.park()
            if self._line.at_work:
                await trio.lowlevel.checkpoint()
            else:
                await self._run_rounds()

    async def _run_rounds(self) -> None:
        self._line.at_work = True
        try:
            while not self._rounds():
                await trio.lowlevel.checkpoint()
        finally:
            self._line.at_work = False

    # ---- rounds

    def _rounds(self) -> bool:
        """Repeat rounds until no work is ready (True) or the loop's turn is over (False)."""
        told, due, interrupted = self._told, self._line.works, self._interrupted
        poll, resume = self._readiness.poll, self._resume
        now = self._monotonic()
        over = now + TURN_S
        self._looks_pay = 0 < now - self._idle_since < LOOKS_PAY_S
        resumed = 0
        for _ in range(PAUSES):  # in virtual time, which stands still while work is done
            if not told:
                self._round += 1
                told.extend(poll(0, _TOLD_AT_ONCE))
                if not told and not due and not interrupted:
                    if not self._look_again(now):
                        self._idle_since = now
                        return True
                    now = self._monotonic()
            now = self._resume_readable(now, over)
            if now > over:
                return False
            if due:
                now = self._resume_due(now, over)
                if now > over:
                    return False
            if interrupted:
                work = interrupted.popleft()
                now = resume(work, self._let_pass(now))
                resumed += 1
                if now > over or resumed == INTERRUPTED_PER_TURN or work.wait is TURN_OVER:
                    return False
        return False

    def _look_again(self, now: float) -> bool:
        """Poll the readiness for a while if that pays; return whether it reported a stream.

        A client on a fast network sends its next request sooner than trio falls asleep and wakes.
        """
        if self._looks_pay:
            poll, told, monotonic = self._readiness.poll, self._told, self._monotonic
            until = now + LOOKS_S
            for _ in range(LOOKS):  # in virtual time, which stands still while work is done
                told.extend(poll(0, _TOLD_AT_ONCE))
                if told:
                    return True
                if monotonic() > until:
                    break
            self._looks_pay = False
        return False

    def _resume_readable(self, now: float, over: float) -> float:
        """Resume the works whose streams are ready, until `over`; return the time after them."""
        told, together, find, resume = self._told, self._together, self._works.get, self._resume
        began = now
        while told:
            key, events = told.popleft()
            work = find(key)
            if work is None or work.round == self._round:
                continue
            if not events & work.wanted:
                self._note_hangup(work, events)
                continue
            if work.took_long:
                if together:
                    now = self._send_together(now)
                began = now = self._let_pass(now)
            self.gathers = len(told) > 0
            work.round = self._round
            before, now = now, resume(work, now)
            work.took_long = now - before > LONG_S
            if now > over:
                break
            if now - began > GROUP_S or len(together) == GROUP:
                began = now = self._send_together(now)
        return self._send_together(now)

    def _let_pass(self, now: float) -> float:
        """Resume works that have become ready, for `LONG_S`; return the time after them.

        The loop calls this before the turn of a work whose last turn took long or was interrupted.
        It leaves out other works whose last turn took long.
        """
        until = now + LONG_S
        for key, events in self._readiness.poll(0, _TOLD_AT_ONCE):
            work = self._works.get(key)
            if work is None:
                continue
            if not events & work.wanted:
                self._note_hangup(work, events)
            elif now < until and not work.took_long:
                work.round = self._round
                before, now = now, self._resume(work, now)
                work.took_long = now - before > LONG_S
        return now

    def _resume_due(self, now: float, over: float) -> float:
        """Resume `DUE_PER_ROUND` due works, until `over`; return the time after them."""
        due, resume = self._line.works, self._resume
        began = now
        for left in range(min(len(due), DUE_PER_ROUND) - 1, -1, -1):
            self.gathers = left > 0
            now = resume(due.popleft(), now)
            if now > over:
                break
            if now - began > GROUP_S:
                began = now = self._send_together(now)
        return self._send_together(now)

    def _send_together(self, now: float) -> float:
        """Have the replies that are ready sent; return the time after them."""
        self.gathers = False
        together, resume = self._together, self._resume
        while together:
            now = resume(together.popleft(), now)
        return now

    def _resume(self, work: ConnectionWork, now: float) -> float:
        """Resume the work for one turn; return the time after it."""
        monotonic = self._monotonic
        began = now
        _set_client(work.client)
        try:
            if work.error is None:
                answer, work.answer, work.wait = work.answer, None, None
                wait = work.coroutine.send(answer)
            else:
                wait = self._throw(work)
            now = monotonic()
            pauses = 0
            while (
                wait is PAUSE
                and pauses < PAUSES
                and now - began < CONNECTION_TURN_S
                and work.to_throw is None
            ):
                pauses += 1
                wait = work.coroutine.send(None)
                now = monotonic()
        except StopIteration:
            self._finish(work)
            now = monotonic()
        except ConnectionEnded as ended:
            ended.__traceback__ = None  # it refers to frames that refer to the error
            self._finish(work)
            now = monotonic()
        except BaseException:
            self._finish(work)
            raise
        else:
            work.is_due = False
            work.wait = wait
            if wait.__class__ is Ready and work.to_throw is None:
                mask: int = wait.mask
                if work.mask != mask:
                    self._ask(work, mask)
                work.wanted = mask
            else:
                self._wait(work, wait)
        if now - began >= NOTED_S:
            self._driver.watch.note(began, now, work.name)
        return now

    def _throw(self, work: ConnectionWork) -> Wait:
        """Resume the work with its error in place of an answer."""
        wait, error = work.wait, work.error
        if isinstance(wait, Until):
            wait.signal.wake = None
        work.error = work.wait = None
        assert error is not None
        try:
            return work.coroutine.throw(error)
        finally:
            error = None  # it refers to this frame, from Python 3.12 on

    def _wait(self, work: ConnectionWork, wait: Wait) -> None:
        """Have the work resumed when its wait is over."""
        work.wanted = 0
        if work.is_reset and work.is_for_client(wait):
            work.end(ClientGone("the client went away before"))
        elif work.to_throw is not None:  # since it was resumed, or before
            work.end()
        if work.error is not None:
            return
        if wait is WITH_OTHERS:
            work.is_due = True
            self._together.append(work)
        elif wait is PAUSE or wait is TURN_OVER:
            work.is_due = True
            self._interrupted.append(work)
        elif isinstance(wait, Until) and wait.seconds is None:
            wait.signal.wake = work.wake
        elif self._nursery is not None:  # else the loop ends it
            route = work.route
            if route is not None and route.in_workers and is_thread_call(wait):
                self._channel.add(wait, work)
            else:
                work.scope = trio.CancelScope()
                self._nursery.start_soon(self._serve_elsewhere, work, wait)

    async def _serve_elsewhere(self, work: ConnectionWork, wait: Wait) -> None:
        answer: Any = None
        error: BaseException | None = None
        scope = work.scope
        assert scope is not None
        self.elsewhere += 1
        try:
            with scope:
                answer = await self._driver.serve(wait)
        except Exception as failure:  # noqa: BLE001 - whatever it is, it is for the work
            error = failure
        finally:
            self.elsewhere -= 1
            work.scope = None
        if scope.cancelled_caught:
            error = work.to_throw
        work.answered(answer, error)

    def _finish(self, work: ConnectionWork) -> None:
        """The work is done."""
        key = work.key
        del self._works[key]
        work.is_due = True  # never again
        work.to_throw = None  # its traceback refers to frames that refer to this
        if work.stream is None:
            return
        work.stream.close()
        self._readiness.forget(key)
        # The next stream may have the same key.
        for event in [event for event in self._told if event[0] == key]:
            self._told.remove(event)
        work.ended()

    # ---- masks of the readiness

    def _ask(self, work: ConnectionWork, mask: int) -> None:
        work.mask = mask
        self._readiness.modify(work.key, mask)

    def _note_hangup(self, work: ConnectionWork, events: int) -> None:
        """Note the end of the stream or its reset, while nobody takes the stream's bytes.

        From the first such event on, only these two are reported, once.
        """
        if work.mask != _ONLY_HANGUP:
            self._ask(work, _ONLY_HANGUP)
        if events & HANGUP:
            work.has_sent_all = True
        if events & BROKEN or (work.is_opening and work.has_sent_all):
            work.reset()


def _must_go_on(work: ConnectionWork) -> bool:
    """Whether the work waits for a call in a thread, or has not begun (`run_beside`)."""
    return work.wait is None or is_thread_call(work.wait)
