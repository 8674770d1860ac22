"""Requests that only the controller does: it is found, and looked up again if it has changed."""

import argparse
from typing import Any

import pytest

from protocol.errors import ErrorCode
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialUpsertion,
)
from protocol.messages.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from tools.dialing import Address
from tools.errors import CommandError
from tools.users.online import change
from tools.wire import brokers
from tools.wire.brokers import Brokers

SETTINGS = {"bootstrap.servers": "a:1"}


class Cluster:
    """Brokers 1 to 3 on ports of these numbers, of which the first is the bootstrap server.

    They name the controllers of `named`, one after the other, and then always the last. Only broker
    `active` takes a change, which it alone knows.
    """

    def __init__(self, *named: int, active: int) -> None:
        self.named = list(named)
        self.active = active
        self.asked: list[int] = []
        """Brokers that got a request for a change, in order."""
        self.described: list[int] = []
        """Brokers that got a request for users, in order."""
        self.users: dict[str, list[int]] = {}
        """Mechanisms by user."""

    def link(self, address: Address) -> "FakeLink":
        return FakeLink(self, address[1])


class FakeLink:
    def __init__(self, cluster: Cluster, broker_id: int) -> None:
        self.cluster = cluster
        self.broker_id = broker_id

    def call(self, request: Any, response: type[Any], *, least: int = 0) -> Any:
        cluster = self.cluster
        if isinstance(request, AlterUserScramCredentialsRequest):
            cluster.asked.append(self.broker_id)
            return self._alter(request)
        if isinstance(request, DescribeUserScramCredentialsRequest):
            cluster.described.append(self.broker_id)
            return self._describe(request)
        named = cluster.named.pop(0) if len(cluster.named) > 1 else cluster.named[0]
        return DescribeClusterResponse(
            controller_id=named,
            brokers=[
                DescribeClusterBroker(broker_id=each, host="a", port=each) for each in (1, 2, 3)
            ],
        )

    def _alter(self, request: Any) -> AlterUserScramCredentialsResponse:
        code = ErrorCode.NOT_CONTROLLER
        if self.broker_id == self.cluster.active:
            code = ErrorCode.NONE
            for each in request.upsertions:
                self.cluster.users.setdefault(each.name, []).append(each.mechanism)
            for each in request.deletions:
                self.cluster.users[each.name].remove(each.mechanism)
        return AlterUserScramCredentialsResponse(
            results=[
                AlterUserScramCredentialsResult(user=each.name, error_code=code)
                for each in (*request.upsertions, *request.deletions)
            ]
        )

    def _describe(self, request: Any) -> DescribeUserScramCredentialsResponse:
        users = self.cluster.users if self.broker_id == self.cluster.active else {}
        named = users if request.users is None else [each.name for each in request.users]
        return DescribeUserScramCredentialsResponse(
            results=[
                DescribeUserScramCredentialsResult(
                    user=name,
                    error_code=0 if users.get(name) else ErrorCode.RESOURCE_NOT_FOUND,
                    credential_infos=[
                        CredentialInfo(mechanism=each, iterations=4096)
                        for each in users.get(name, ())
                    ],
                )
                for name in named
            ]
        )

    def close(self) -> None:
        pass


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Cluster:
    named, active = request.param
    made = Cluster(*named, active=active)
    monkeypatch.setattr(brokers, "linker", lambda settings: made.link)
    monkeypatch.setattr(brokers, "require_broker", lambda settings: None)
    monkeypatch.setattr(brokers, "client_settings", lambda args: SETTINGS)
    return made


def reached() -> Brokers:
    return Brokers(SETTINGS)


def of(*named: int, active: int) -> Any:
    return pytest.mark.parametrize("cluster", [(named, active)], indirect=True)


def ask() -> list[int]:
    """Ask for a change; return the codes."""
    upsertion = ScramCredentialUpsertion(name="u", mechanism=1)
    request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion])
    return codes(reached().ask_controller(request, AlterUserScramCredentialsResponse, codes))


def codes(answer: AlterUserScramCredentialsResponse) -> list[int]:
    return [each.error_code for each in answer.results]


@of(3, active=3)
def test_the_controller_is_asked_and_no_other(cluster: Cluster) -> None:
    assert ask() == [ErrorCode.NONE]
    assert cluster.asked == [3]


@of(3, 2, active=2)
def test_one_that_is_none_any_more_is_looked_up_again(cluster: Cluster) -> None:
    assert ask() == [ErrorCode.NONE]
    assert cluster.asked == [3, 2]


@of(3, 2, 1, active=1)
def test_the_second_refusal_is_the_answer(cluster: Cluster) -> None:
    assert ask() == [ErrorCode.NOT_CONTROLLER]
    assert cluster.asked == [3, 2]


@of(-1, active=1)
def test_a_cluster_may_have_none(cluster: Cluster) -> None:
    with pytest.raises(CommandError, match="the cluster has no controller"):
        ask()
    assert cluster.asked == []


def users(password: str | None, *mechanisms: str, **given: str) -> dict[str, dict[str, int]]:
    args = argparse.Namespace(**{"add": None, "remove": None, "iterations": 4096, **given})
    return change(args, password, mechanisms)


@of(3, active=3)
def test_users_are_changed_and_shown_by_the_controller(cluster: Cluster) -> None:
    both = ("SCRAM-SHA-256", "SCRAM-SHA-512")
    assert users("secret", *both, add="u") == {"u": dict.fromkeys(both, 4096)}
    assert users(None, *both[:1], remove="u") == {"u": {both[1]: 4096}}
    assert cluster.asked == [3, 3, 3]
    cluster.described.clear()
    assert users(None) == {}
    assert cluster.described == [1]  # any broker knows them, with a controller or without
