"""Answers by tasks of their own: completed, given up with the client, or an error reply."""

import trio

from broker.request import Pending
from broker.slow_answers import SlowAnswers


async def ready(nursery: trio.Nursery) -> SlowAnswers:
    answers = SlowAnswers()
    await nursery.start(answers.run)
    return answers


def in_loop(scenario) -> None:
    async def run() -> None:
        async with trio.open_nursery() as nursery:
            await scenario(await ready(nursery))
            nursery.cancel_scope.cancel()

    trio.run(run)


def test_the_reply_comes_when_the_work_is_done() -> None:
    async def scenario(answers: SlowAnswers) -> None:
        go = trio.Event()

        async def work() -> str:
            await go.wait()
            return "reply"

        pending = answers.begin(work, lambda: "failed")
        await trio.testing.wait_all_tasks_blocked()
        assert not pending.done
        assert answers.working == 1
        go.set()
        assert await pending.wait_reply() == "reply"
        assert answers.working == 0

    in_loop(scenario)


def test_a_pending_that_is_there_is_completed() -> None:
    async def scenario(answers: SlowAnswers) -> None:
        async def work() -> str:
            return "reply"

        pending = Pending()
        assert answers.begin(work, lambda: "failed", pending) is pending
        assert await pending.wait_reply() == "reply"

    in_loop(scenario)


def test_the_work_ends_with_its_client() -> None:
    async def scenario(answers: SlowAnswers) -> None:
        pending = answers.begin(trio.sleep_forever, lambda: "failed")
        await trio.testing.wait_all_tasks_blocked()
        pending.abandon()
        await trio.testing.wait_all_tasks_blocked()
        assert answers.working == 0
        assert not pending.done

    in_loop(scenario)


def test_a_bug_is_told_to_that_client_only() -> None:
    async def scenario(answers: SlowAnswers) -> None:
        async def work() -> str:
            raise ValueError("a bug")

        assert await answers.begin(work, lambda: "failed").wait_reply() == "failed"

    in_loop(scenario)


def test_a_broker_that_stops_answers_with_the_error() -> None:
    answers = SlowAnswers()
    assert answers.begin(trio.sleep_forever, lambda: "failed").reply == "failed"
