"""Delegation tokens (KIP-48): a client proves by a token, with SCRAM, that it acts for the owner.

There are none, and this is not imported, unless `delegation.token.secret.key` is set.

A token's secret is its HMAC, which follows from its id and `delegation.token.secret.key`; nothing
secret is stored. Its base64 is the password of SCRAM. The broker has to salt it before the first
use, which takes milliseconds and is done in a thread, when a token is made and, after a restart,
when it is first used.

Tokens are in the metadata tree under Kafka's paths (`DelegationTokenManagerZk`), and in memory; the
rules of times and errors are those of Kafka 4 (`DelegationTokenControlManager`). A watch brings the
changes of other writers. A token that has expired authenticates nobody, even while it has not been
removed yet.
"""

import base64
import hmac
import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from broker.cluster.changed_nodes import ChangedNodes
from broker.cluster.metadata_store import (
    Create,
    Delete,
    MetadataStore,
    MetadataStoreError,
    Put,
    StoredNode,
)
from broker.cluster.refusals import store_errors_told
from broker.cluster.tree_values import (
    DELEGATION_TOKENS,
    delegation_token_path,
    encode,
    reading,
)
from broker.fairness import Lane
from broker.quotas.sanitizer import desanitized, sanitized
from broker.security.authentication.outcomes import AuthenticatedUser
from broker.security.principal import Principal
from protocol.errors import ErrorCode, KafkaError
from protocol.sasl.scram import (
    MIN_ITERATIONS,
    ScramCredential,
    ScramMechanism,
    new_credential,
    random_text,
)
from protocol.types import uuid_to_text
from storage.clock import Clock
from storage.task import Task
from storage.waits import Lock

logger = logging.getLogger(__name__)

LAST_MOMENT_MS: Final = (1 << 63) - 1
_VERSION: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationToken:
    """One token. Times are milliseconds of the wall clock."""

    token_id: str
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_ms: int
    expires_ms: int
    """Unless it is renewed."""
    max_ms: int
    """When it can be renewed no more."""

    def has_expired(self, now_ms: int) -> bool:
        """Whether it authenticates nobody any more."""
        return self.max_ms < now_ms or self.expires_ms < now_ms

    def belongs_to(self, principal: Principal) -> bool:
        """Whether `principal` owns or renews it, and so may renew and expire it.

        Kafka's `DelegationTokenControlManager.allowedToRenew`.
        """
        return principal == self.owner or principal in self.renewers

    @property
    def parties(self) -> tuple[Principal, ...]:
        """Its owner, requester and renewers, who may describe it.

        Kafka's `TokenInformation.ownerOrRenewer` (KIP-373).
        """
        return self.owner, self.requester, *self.renewers


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSettings:
    """`delegation.token.*`; times in milliseconds."""

    secret: bytes
    max_lifetime_ms: int
    expiry_ms: int


class DelegationTokens:
    """The tokens of the cluster."""

    def __init__(
        self,
        store: MetadataStore,
        clock: Clock,
        settings: TokenSettings,
        *,
        new_id: Callable[[], bytes],
        random_bits: Callable[[int], int],
        lane: Lane,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._new_id = new_id
        self._random_bits = random_bits
        self._lane = lane
        self._changing = Lock()
        self._tokens: dict[str, DelegationToken] = {}
        self._ids: dict[bytes, str] = {}
        """By HMAC."""
        self._credentials: dict[tuple[str, ScramMechanism], ScramCredential] = {}
        self._changed = ChangedNodes(
            store,
            [DELEGATION_TOKENS],
            what="Delegation tokens",
            node_of=lambda path: None if path == DELEGATION_TOKENS else path,
            apply=self._apply,
        )
        self._catch_up = self._changed.catch_up_if_possible
        """Awaited before each answer."""

    async def load(self) -> None:
        """Read all tokens. Raises MetadataStoreError."""
        names = await self._store.children(DELEGATION_TOKENS)
        self._changed.note(map(delegation_token_path, names))
        await self._catch_up()

    async def _apply(self, path: str, node: StoredNode | None) -> None:
        if node is None:
            self._forget(path.rpartition("/")[2])
        else:
            self._keep(decode_token(path, node.value))

    def _keep(self, token: DelegationToken) -> None:
        self._tokens[token.token_id] = token
        self._ids[self.hmac(token)] = token.token_id

    def _forget(self, token_id: str) -> None:
        token = self._tokens.pop(token_id, None)
        if token is not None:
            del self._ids[self.hmac(token)]
            for mechanism in ScramMechanism:
                self._credentials.pop((token_id, mechanism), None)

    def hmac(self, token: DelegationToken) -> bytes:
        """The token's secret."""
        return hmac.digest(self._settings.secret, token.token_id.encode(), "sha512")

    # ---- requests

    async def create(
        self,
        owner: Principal,
        requester: Principal,
        renewers: Iterable[Principal],
        max_lifetime_ms: int,
    ) -> DelegationToken:
        """Make a token. Raises KafkaError."""
        settings = self._settings
        now = self._clock.wall_ms()
        lifetime_ms = settings.max_lifetime_ms
        if max_lifetime_ms > 0:
            lifetime_ms = min(lifetime_ms, max_lifetime_ms)
        max_ms = min(now + lifetime_ms, LAST_MOMENT_MS)
        token = DelegationToken(
            token_id=uuid_to_text(self._new_id()),
            owner=owner,
            requester=requester,
            renewers=tuple(renewers),
            issued_ms=now,
            expires_ms=min(max_ms, now + settings.expiry_ms),
            max_ms=max_ms,
        )
        async with self._changing:
            await self._write(Create(delegation_token_path(token.token_id), encode_token(token)))
        for mechanism in ScramMechanism:
            await self._credential(mechanism, token)
        logger.info("Created a delegation token: %s for owner: %s", token.token_id, owner)
        return token

    async def renew(self, principal: Principal, secret: bytes, period_ms: int) -> int:
        """Have a token expire later; return when. Raises KafkaError."""
        async with self._changing:
            token = await self._found(secret)
            now = self._clock.wall_ms()
            if token.has_expired(now):
                raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
            self._require_belonging(token, principal)
            period = self._settings.expiry_ms
            if period_ms > 0:
                period = min(period, period_ms)
            return await self._set_expiry(token, min(token.max_ms, now + period))

    async def expire(self, principal: Principal, secret: bytes, period_ms: int) -> int:
        """Have a token expire in `period_ms`, or at once if that is negative; return when.

        Raises KafkaError.
        """
        async with self._changing:
            token = await self._found(secret)
            now = self._clock.wall_ms()
            self._require_belonging(token, principal)
            if period_ms < 0:
                await self._write(Delete(delegation_token_path(token.token_id)))
                logger.info(
                    "Token expired for token: %s for owner: %s", token.token_id, token.owner
                )
                return now
            if token.has_expired(now):
                raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
            return await self._set_expiry(token, min(token.max_ms, now + period_ms))

    async def all(self) -> list[DelegationToken]:
        """Return all tokens."""
        await self._catch_up()
        return list(self._tokens.values())

    def task(self, period_ms: int) -> Task:
        """The task that removes what has expired."""
        return Task(
            name="delete-expired-tokens",
            initial_delay_ms=period_ms,
            period_ms=period_ms,
            run=self.remove_expired,
            foreseen=(MetadataStoreError,),
        )

    async def remove_expired(self) -> None:
        """Remove what has expired. Raises MetadataStoreError."""
        await self._catch_up()
        now = self._clock.wall_ms()
        for token in [token for token in self._tokens.values() if token.has_expired(now)]:
            async with self._changing:
                logger.info(
                    "Delegation token expired for token: %s for owner: %s",
                    token.token_id,
                    token.owner,
                )
                path = delegation_token_path(token.token_id)
                await self._store.apply([Delete(path, recursive=True)])
                await self._catch_up()

    async def authenticating(
        self, mechanism: ScramMechanism, token_id: str
    ) -> tuple[ScramCredential, AuthenticatedUser] | None:
        """Return a token's credential and owner; None if there is no such token, or no more."""
        await self._changed.catch_up_unless_under_way()
        token = self._tokens.get(token_id)
        if token is None or token.has_expired(self._clock.wall_ms()):
            return None
        credential = await self._credential(mechanism, token)
        return credential, AuthenticatedUser(
            token.owner.name, by_token=True, expires_ms=token.expires_ms
        )

    # ---- parts

    def _require_belonging(self, token: DelegationToken, principal: Principal) -> None:
        if not token.belongs_to(principal):
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)

    async def _found(self, secret: bytes) -> DelegationToken:
        await self._catch_up()
        token_id = self._ids.get(secret)
        if token_id is None:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        return self._tokens[token_id]

    async def _set_expiry(self, token: DelegationToken, expires_ms: int) -> int:
        token = replace(token, expires_ms=expires_ms)
        await self._write(Put(delegation_token_path(token.token_id), encode_token(token)))
        logger.info("Updated expiry time for token: %s for owner: %s", token.token_id, token.owner)
        return expires_ms

    async def _write(self, operation: Create | Put | Delete) -> None:
        with store_errors_told():
            await self._store.apply([operation])
        await self._catch_up()

    async def _credential(
        self, mechanism: ScramMechanism, token: DelegationToken
    ) -> ScramCredential:
        key = token.token_id, mechanism
        known = self._credentials.get(key)
        if known is not None:
            return known
        password = base64.b64encode(self.hmac(token)).decode()
        salt = random_text(self._random_bits).encode()
        made = await self._lane.call(new_credential, mechanism, password, salt, MIN_ITERATIONS)
        if token.token_id in self._tokens:  # and was not removed meanwhile
            made = self._credentials.setdefault(key, made)
        return made


def encode_token(token: DelegationToken) -> bytes:
    """The value of a token's node, version 3."""
    return encode(
        {
            "owner": sanitized(str(token.owner)),
            "renewers": [sanitized(str(renewer)) for renewer in token.renewers],
            "maxTimestamp": token.max_ms,
            "tokenId": token.token_id,
            "version": _VERSION,
            "issueTimestamp": token.issued_ms,
            "expiryTimestamp": token.expires_ms,
            "tokenRequester": sanitized(str(token.requester)),
        }
    )


def decode_token(path: str, data: bytes) -> DelegationToken:
    """A token's node. Raises BadValueError."""

    def principal(text: Any) -> Principal:
        return Principal.of(desanitized(text))

    with reading(path):
        value = json.loads(data)
        return DelegationToken(
            token_id=str(value["tokenId"]),
            owner=principal(value["owner"]),
            requester=principal(value.get("tokenRequester", value["owner"])),
            renewers=tuple(principal(renewer) for renewer in value["renewers"]),
            issued_ms=int(value["issueTimestamp"]),
            expires_ms=int(value["expiryTimestamp"]),
            max_ms=int(value["maxTimestamp"]),
        )
