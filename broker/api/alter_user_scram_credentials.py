"""AlterUserScramCredentials (key 51): set and delete SCRAM credentials of users (KIP-554).

Behaviour: `ScramControlManager` of Kafka 4
* A user may be named once in a request, for one mechanism: else DUPLICATE_RESOURCE.
* 4096 to 16384 iterations, else UNACCEPTABLE_CREDENTIAL, as for a user without a name; an unknown
  mechanism is UNSUPPORTED_SASL_MECHANISM, a deletion of what is not there RESOURCE_NOT_FOUND.
* Users that are not refused are changed together, and the change is durable before the response.
* A client salts the password; the broker keeps what verifies proofs and not what makes them.
* An empty salted password, over which Kafka breaks, is an UNACCEPTABLE_CREDENTIAL.
"""

from typing import Final

from broker.api_facts import Api
from broker.cluster.metadata_store import MetadataStore
from broker.request import RequestContext
from broker.security.access import ALTER_CLUSTER
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)

API: Final = Api(
    key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    versions=(0, 0),
    most_elements=10_000,
    controller_only=True,
    # ControllerApis.handleAlterUserScramCredentials
    accesses=(ALTER_CLUSTER,),
    make=lambda s: AlterUserScramCredentialsHandler(s.store),
)


class AlterUserScramCredentialsHandler:
    """Has the changes judged and written."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    async def __call__(
        self, ctx: RequestContext, request: AlterUserScramCredentialsRequest
    ) -> AlterUserScramCredentialsResponse:
        """The response, when the changes are durable."""
        from broker.security.scram_changes import alter  # seldom

        done = await alter(self._store, (*request.deletions, *request.upsertions))
        return AlterUserScramCredentialsResponse(
            results=[
                _result(user, ErrorCode.NONE, None)
                if error is None
                else _result(user, error.code, str(error))
                for user, error in done.items()
            ]
        )

    def error_response(
        self, ctx: RequestContext, request: AlterUserScramCredentialsRequest, code: ErrorCode
    ) -> AlterUserScramCredentialsResponse:
        """The code for every user that is named."""
        deleted = (one.name for one in request.deletions)
        users = dict.fromkeys((*deleted, *(one.name for one in request.upsertions)))
        return AlterUserScramCredentialsResponse(
            results=[_result(user, code, code.text) for user in users]
        )


def _result(user: str, code: ErrorCode, message: str | None) -> AlterUserScramCredentialsResult:
    return AlterUserScramCredentialsResult(user=user, error_code=code, error_message=message)
