"""Users of a broker that runs (DescribeUserScramCredentials, AlterUserScramCredentials)."""

import argparse
from collections.abc import Sequence
from random import SystemRandom
from typing import Final

from protocol.errors import ErrorCode
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from protocol.sasl.scram import BY_WIRE_ID, ScramMechanism, random_text, salted_password
from tools.errors import CommandError
from tools.link import Link
from tools.users.listing import Users
from tools.wire.brokers import Brokers, brokers
from tools.wire.refusals import require_done

_ABSENT: Final = ErrorCode.RESOURCE_NOT_FOUND


def change(args: argparse.Namespace, password: str | None, mechanisms: Sequence[str]) -> Users:
    """Do what the arguments say; return all users, or the one that they name.

    Raises CommandError.
    """
    wanted = [ScramMechanism(name) for name in mechanisms]
    with brokers(args) as cluster:
        if password is not None:
            for mechanism in wanted:  # a request changes a user once
                upsertion = _upsertion(args.add, password, mechanism, args.iterations)
                _alter(cluster, upsertions=[upsertion])
        elif args.remove is not None:
            _remove(cluster, args.remove, wanted)
        else:
            return _described(cluster.any(), None)
        # The controller made the change; other brokers learn of it later.
        return _described(cluster.controller(), args.add or args.remove)


def _described(broker: Link, user: str | None) -> Users:
    request = DescribeUserScramCredentialsRequest(
        users=None if user is None else [UserName(name=user)]
    )
    answer = broker.call(request, DescribeUserScramCredentialsResponse)
    require_done(answer.error_code, answer.error_message)
    users: Users = {}
    for result in answer.results:
        if result.error_code == _ABSENT:
            users[result.user] = {}
            continue
        require_done(result.error_code, result.error_message, what=result.user)
        users[result.user] = {
            BY_WIRE_ID[info.mechanism].value: info.iterations
            for info in result.credential_infos
            if info.mechanism in BY_WIRE_ID
        }
    return users


def _remove(cluster: Brokers, user: str, mechanisms: Sequence[ScramMechanism]) -> None:
    has = _described(cluster.controller(), user)[user]
    known = [mechanism for mechanism in mechanisms if mechanism.value in has]
    if not known:
        raise CommandError(f"there is no user {user} with that mechanism")
    for mechanism in known:
        deletion = ScramCredentialDeletion(name=user, mechanism=mechanism.wire_id)
        _alter(cluster, deletions=[deletion])


def _alter(
    cluster: Brokers,
    *,
    deletions: Sequence[ScramCredentialDeletion] = (),
    upsertions: Sequence[ScramCredentialUpsertion] = (),
) -> None:
    request = AlterUserScramCredentialsRequest(
        deletions=list(deletions), upsertions=list(upsertions)
    )
    answer = cluster.ask_controller(
        request,
        AlterUserScramCredentialsResponse,
        lambda answer: [result.error_code for result in answer.results],
    )
    for result in answer.results:
        require_done(result.error_code, result.error_message, what=result.user)


def _upsertion(
    user: str, password: str, mechanism: ScramMechanism, iterations: int
) -> ScramCredentialUpsertion:
    salt = random_text(SystemRandom().getrandbits).encode()
    return ScramCredentialUpsertion(
        name=user,
        mechanism=mechanism.wire_id,
        iterations=iterations,
        salt=salt,
        salted_password=salted_password(mechanism, password, salt, iterations),
    )
