"""DescribeUserScramCredentials (key 50): which SCRAM mechanisms users have (KIP-554).

Behaviour: `ScramImage.describe` of Kafka
* Neither names nor an empty list: all users, by name. A named user without credentials is
  RESOURCE_NOT_FOUND, one that is named twice DUPLICATE_RESOURCE.
* Only mechanisms and iterations are shown.
"""

from collections import Counter
from typing import TYPE_CHECKING, Final

from broker.api_facts import Api
from broker.cluster.metadata_store import MetadataStore
from broker.request import RequestContext
from broker.security.access import DESCRIBE_CLUSTER
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from storage.waits import PAUSE

if TYPE_CHECKING:
    from broker.security.scram_credentials import Credentials

API: Final = Api(
    key=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    versions=(0, 0),
    most_elements=100_000,
    ends_with_client=True,
    # KafkaApis.handleDescribeUserScramCredentialsRequest
    accesses=(DESCRIBE_CLUSTER,),
    make=lambda s: DescribeUserScramCredentialsHandler(s.store),
)


class DescribeUserScramCredentialsHandler:
    """Reads the credentials of users from the metadata tree."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    async def __call__(
        self, ctx: RequestContext, request: DescribeUserScramCredentialsRequest
    ) -> DescribeUserScramCredentialsResponse:
        """The response, in turns if there are many users."""
        from broker.security.scram_credentials import describe, describe_all  # seldom

        results = []
        if not request.users:
            ctx.large = True
            found = await describe_all(self._store)
            for user in sorted(found):
                results.append(_described(user, found[user]))
                await PAUSE
        for user, times in Counter(one.name for one in request.users or ()).items():
            if times > 1:
                results.append(
                    _refused(
                        user,
                        ErrorCode.DUPLICATE_RESOURCE,
                        "Cannot describe SCRAM credentials for the same user twice in a single"
                        f" request: {user}",
                    )
                )
            else:
                results.append(_described(user, await describe(self._store, user)))
            await PAUSE
        return DescribeUserScramCredentialsResponse(error_message="", results=results)

    def error_response(
        self, ctx: RequestContext, request: DescribeUserScramCredentialsRequest, code: ErrorCode
    ) -> DescribeUserScramCredentialsResponse:
        """The code, once more for each user that is named, without the name."""
        refusal = _refused("", code, code.text)
        return DescribeUserScramCredentialsResponse(
            error_code=code, error_message=code.text, results=[refusal] * len(request.users or ())
        )


def _described(user: str, credentials: "Credentials") -> DescribeUserScramCredentialsResult:
    if not credentials:
        return _refused(
            user,
            ErrorCode.RESOURCE_NOT_FOUND,
            f"Attempt to describe a user credential that does not exist: {user}",
        )
    return DescribeUserScramCredentialsResult(
        user=user,
        error_message="",
        credential_infos=[
            CredentialInfo(mechanism=mechanism.wire_id, iterations=credential.iterations)
            for mechanism, credential in credentials.items()
        ],
    )


def _refused(user: str, code: ErrorCode, message: str) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(
        user=user, error_code=code, error_message=message, credential_infos=[]
    )
