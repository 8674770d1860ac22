"""Changes of SCRAM credentials that one request asks for: judged one by one, written together.

Kafka's `ScramControlManager`.
"""

from collections.abc import Iterable

from broker.cluster.metadata_store import MetadataStore, MetadataStoreError
from broker.security.scram_credentials import change_credentials, describe
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_user_scram_credentials import (
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from protocol.sasl.scram import (
    BY_WIRE_ID,
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramCredential,
    ScramMechanism,
    credential_of,
)
from storage.waits import PAUSE

Wish = ScramCredentialDeletion | ScramCredentialUpsertion


async def alter(store: MetadataStore, wishes: Iterable[Wish]) -> dict[str, KafkaError | None]:
    """Make the changes that can be made, durably; return every user, with why not."""
    changes: dict[str, tuple[ScramMechanism, ScramCredential | None]] = {}
    refused: dict[str, KafkaError] = {}
    for wish in wishes:
        user = wish.name
        if user in refused:
            continue
        try:
            if changes.pop(user, None) is not None:
                raise KafkaError(
                    ErrorCode.DUPLICATE_RESOURCE,
                    "A user credential cannot be altered twice in the same request",
                )
            changes[user] = await _judged(store, wish)
        except KafkaError as error:
            refused[user] = error.with_traceback(None)
        except MetadataStoreError as error:
            refused[user] = _unwritten(error)
        await PAUSE
    try:
        if changes:
            await change_credentials(store, changes)
    except MetadataStoreError as error:
        refused |= dict.fromkeys(changes, _unwritten(error))
    return dict.fromkeys(changes) | refused


async def _judged(
    store: MetadataStore, wish: Wish
) -> tuple[ScramMechanism, ScramCredential | None]:
    """Return the change. Raises KafkaError and MetadataStoreError."""
    if not wish.name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    mechanism = BY_WIRE_ID.get(wish.mechanism)
    if mechanism is None:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(wish, ScramCredentialUpsertion):
        return mechanism, _credential(mechanism, wish)
    if mechanism not in await describe(store, wish.name):
        raise KafkaError(
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        )
    return mechanism, None


def _credential(mechanism: ScramMechanism, wish: ScramCredentialUpsertion) -> ScramCredential:
    if wish.iterations < MIN_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if wish.iterations > MAX_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if not len(wish.salted_password):
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Salted password must not be empty")
    salted, salt = bytes(wish.salted_password), bytes(wish.salt)
    return credential_of(mechanism, salted, salt, wish.iterations)


def _unwritten(error: MetadataStoreError) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"The metadata could not be written: {error}")
