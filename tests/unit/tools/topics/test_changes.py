"""Topics are deleted, or people hear what becomes of the deletion."""

import argparse
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from tools.connection import TIMEOUT_S
from tools.errors import CommandError
from tools.topics.changes import delete


class Admin:
    """Knows topic `t`, and answers its deletion with a code."""

    def __init__(self, code: int | None = None) -> None:
        self.code = code

    def list_topics(self, timeout: float) -> Any:
        return SimpleNamespace(topics={"t": None})

    def delete_topics(
        self, names: list[str], *, operation_timeout: float, request_timeout: float
    ) -> dict[str, "Future[None]"]:
        assert operation_timeout < request_timeout <= TIMEOUT_S, "the broker answers before"
        answer: Future[None] = Future()
        if self.code is None:
            answer.set_result(None)
        else:
            answer.set_exception(KafkaException(KafkaError(self.code)))
        return dict.fromkeys(names, answer)


ASKED = argparse.Namespace(delete=["t"], if_exists=False, json=False)


def test_a_topic_that_is_gone(capsys: pytest.CaptureFixture[str]) -> None:
    delete(Admin(), ASKED)
    assert capsys.readouterr().out == "Deleted topic t.\n"


def test_a_deletion_that_takes_longer_goes_on() -> None:
    with pytest.raises(CommandError, match="t is being deleted, but not gone after 10 seconds"):
        delete(Admin(KafkaError.REQUEST_TIMED_OUT), ASKED)


def test_a_deletion_that_is_refused() -> None:
    with pytest.raises(KafkaException):
        delete(Admin(KafkaError.TOPIC_AUTHORIZATION_FAILED), ASKED)
