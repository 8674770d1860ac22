"""AlterUserScramCredentials and DescribeUserScramCredentials over the wire (KIP-554)."""

import logging
from typing import Any

import pytest

from broker.api.alter_user_scram_credentials import AlterUserScramCredentialsHandler
from broker.api.describe_user_scram_credentials import DescribeUserScramCredentialsHandler
from broker.cluster.embedded_store import EmbeddedStore
from broker.cluster.metadata_store import MetadataStoreError
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from protocol.sasl.scram import ScramMechanism, credential_of_text, new_credential, salted_password
from storage.waits import at_once
from tests.support.api_calls import call, context, over_the_wire
from tests.support.stores import open_store

ALTER, DESCRIBE = ApiKey.ALTER_USER_SCRAM_CREDENTIALS, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
TWICE = "A user credential cannot be altered twice in the same request"


@pytest.fixture
def store() -> EmbeddedStore:
    opened: EmbeddedStore = at_once(open_store())
    return opened


def upsertion(
    user: str, mechanism: int = 1, iterations: int = 4096, salted: bytes = b"x"
) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=salted
    )


def deletion(user: str, mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=user, mechanism=mechanism)


def alter(
    store: Any, *wishes: ScramCredentialDeletion | ScramCredentialUpsertion
) -> dict[str, tuple[int, str | None]]:
    request = AlterUserScramCredentialsRequest(
        deletions=[one for one in wishes if isinstance(one, ScramCredentialDeletion)],
        upsertions=[one for one in wishes if isinstance(one, ScramCredentialUpsertion)],
    )
    answer = call(AlterUserScramCredentialsHandler(store), ALTER, 0, request)
    assert len({result.user for result in answer.results}) == len(answer.results)
    return {result.user: (result.error_code, result.error_message) for result in answer.results}


def described(store: EmbeddedStore, *users: str) -> dict[str, Any]:
    """Iterations by mechanism, or the error, by user."""
    request = DescribeUserScramCredentialsRequest(users=[UserName(name=user) for user in users])
    answer = call(DescribeUserScramCredentialsHandler(store), DESCRIBE, 0, request)
    assert (answer.error_code, answer.error_message) == (0, "")
    return {
        result.user: (result.error_code, result.error_message)
        if result.error_code
        else {info.mechanism: info.iterations for info in result.credential_infos}
        for result in answer.results
    }


def test_credentials_are_set_described_and_deleted(store: EmbeddedStore) -> None:
    assert alter(store, upsertion("bob", 2, 16384), upsertion("alice")) == {
        "bob": (0, None),
        "alice": (0, None),
    }
    assert alter(store, upsertion("alice", 2, 8192)) == {"alice": (0, None)}
    assert described(store) == {"alice": {1: 4096, 2: 8192}, "bob": {2: 16384}}
    assert list(described(store)) == ["alice", "bob"]
    assert described(store, "bob") == {"bob": {2: 16384}}
    assert alter(store, deletion("alice"), upsertion("carol")) == {
        "alice": (0, None),
        "carol": (0, None),
    }
    assert described(store) == {"alice": {2: 8192}, "bob": {2: 16384}, "carol": {1: 4096}}
    assert alter(store, deletion("alice", 2)) == {"alice": (0, None)}
    assert "alice" not in described(store)


def test_what_is_stored_is_what_kafka_stores(store: EmbeddedStore) -> None:
    sha_256 = ScramMechanism.SHA_256
    alter(store, upsertion("al ice", salted=salted_password(sha_256, "secret", b"salt", 4096)))
    node = at_once(store.get("/config/users/al%20ice"))
    assert node is not None
    text = node.value.decode()
    assert text.startswith('{"version":1,"config":{"SCRAM-SHA-256":"salt=c2FsdA==,stored_key=')
    credential = credential_of_text(text.split('"SCRAM-SHA-256":"')[1].rstrip('"}'))
    assert credential == new_credential(sha_256, "secret", b"salt", 4096)
    assert b"secret" not in node.value


@pytest.mark.parametrize(
    ("wish", "code", "message"),
    [
        (upsertion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (deletion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (upsertion("a", 0), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (upsertion("a", 3), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (deletion("a", 0), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (upsertion("a", 1, 4095), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (upsertion("a", 1, 16385), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        (
            upsertion("a", salted=b""),
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            "Salted password must not be empty",
        ),
        (
            deletion("a"),
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        ),
    ],
)
def test_what_is_refused_leaves_the_others_alone(
    store: EmbeddedStore,
    wish: ScramCredentialDeletion | ScramCredentialUpsertion,
    code: ErrorCode,
    message: str,
) -> None:
    assert alter(store, wish, upsertion("bob")) == {wish.name: (code, message), "bob": (0, None)}
    assert described(store) == {"bob": {1: 4096}}


@pytest.mark.parametrize(
    "wishes",
    [
        (upsertion("a"), upsertion("a", 2)),
        (upsertion("a"), upsertion("a")),
        (deletion("a"), upsertion("a", 2)),
        (deletion("a"), deletion("a", 2)),
        (upsertion("a"), upsertion("a"), upsertion("a")),
    ],
)
def test_a_user_may_be_named_once(
    store: EmbeddedStore, wishes: tuple[ScramCredentialDeletion | ScramCredentialUpsertion, ...]
) -> None:
    alter(store, upsertion("a", 1, 5000))
    alter(store, upsertion("a", 2, 5000))
    assert alter(store, *wishes, upsertion("b")) == {
        "a": (ErrorCode.DUPLICATE_RESOURCE, TWICE),
        "b": (0, None),
    }
    assert described(store, "a") == {"a": {1: 5000, 2: 5000}}


def test_an_unknown_user_in_the_request_is_not_found(store: EmbeddedStore) -> None:
    alter(store, upsertion("alice"))
    assert described(store, "bob", "alice", "carol", "carol") == {
        "bob": (
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to describe a user credential that does not exist: bob",
        ),
        "alice": {1: 4096},
        "carol": (
            ErrorCode.DUPLICATE_RESOURCE,
            "Cannot describe SCRAM credentials for the same user twice in a single request: carol",
        ),
    }


def test_no_list_and_an_empty_one_ask_for_all(store: EmbeddedStore) -> None:
    alter(store, upsertion("alice"))
    handler = DescribeUserScramCredentialsHandler(store)
    for users in (None, []):
        answer = call(handler, DESCRIBE, 0, DescribeUserScramCredentialsRequest(users=users))
        assert [result.user for result in answer.results] == ["alice"]


def test_a_tree_that_cannot_be_written_is_told_for_each_user(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(operations: object) -> None:
        raise MetadataStoreError("/config/users/a", "disk full")

    monkeypatch.setattr(store, "apply", broken)
    answer = alter(store, upsertion("a"), upsertion("b"), upsertion(""))
    failed = (
        ErrorCode.UNKNOWN_SERVER_ERROR,
        "The metadata could not be written: /config/users/a: disk full",
    )
    assert answer == {
        "a": failed,
        "b": failed,
        "": (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
    }


def test_nothing_of_a_password_is_logged(
    store: EmbeddedStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    alter(store, upsertion("alice", salted=b"the salted password"), upsertion("", salted=b"salted"))
    assert "salted" not in caplog.text


def test_an_error_of_the_whole_request() -> None:
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    request = AlterUserScramCredentialsRequest(
        deletions=[deletion("a")], upsertions=[upsertion("b"), upsertion("a")]
    )
    handler = AlterUserScramCredentialsHandler(None)  # type: ignore[arg-type]
    response = handler.error_response(context(ALTER, 0), request, code)
    answer = over_the_wire(ALTER, 0, response)
    assert [(one.user, one.error_code) for one in answer.results] == [("a", code), ("b", code)]
