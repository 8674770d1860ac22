"""Makes the listeners that authenticate, with their mechanisms, from the configuration."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

from broker.cluster.metadata_store import MetadataStore
from broker.deadlines import Deadlines
from broker.fairness import Lane
from broker.security.authentication.limited_lines import LimitedLines
from broker.security.authentication.mechanism import Mechanism
from broker.security.authentication.mechanisms.scram import TokenCredentials
from broker.security.authentication.sasl_listener import SaslListener, SaslSurroundings
from broker.security.authentication.statistics import AuthenticationStatistics
from broker.security.scram_credentials import ScramCredentials
from broker.world.web import Web
from config.sasl_settings import (
    MechanismSettings,
    PlainSettings,
    SaslSettings,
    ScramSettings,
    SecuredTokens,
    UnsecuredTokens,
)
from storage.clock import Clock
from storage.task import Task
from storage.waits import Work

CHECKS: Final = 8
"""Checks of passwords by functions of others, which may wait, at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismSurroundings:
    """The parts that mechanisms are made from, beside their settings."""

    store: MetadataStore
    tokens: TokenCredentials | None
    signatures: Lane
    random: Random
    web: Web
    clock: Clock


class AuthenticatingListeners:
    """All listeners of a broker that authenticate by SASL."""

    def __init__(
        self,
        settings: Mapping[str, SaslSettings],
        parts: MechanismSurroundings,
        *,
        deadlines: Deadlines,
        delay_s: float,
    ) -> None:
        """Raises ConfigError if a check of passwords cannot be imported."""
        self._parts = parts
        self._checks = Lane(CHECKS)
        self._loads: list[Callable[[], Work[None]]] = []
        self._tasks: list[Callable[[], Task]] = []
        self._users: ScramCredentials | None = None
        surroundings = SaslSurroundings(
            clock=parts.clock,
            deadlines=deadlines,
            lines=LimitedLines(parts.clock),
            delay_s=delay_s,
        )
        self.by_name = {
            name: SaslListener(
                name,
                [self._mechanism(mechanism) for mechanism in of_listener.mechanisms],
                surroundings,
                max_receive_bytes=of_listener.max_receive_bytes,
            )
            for name, of_listener in settings.items()
        }

    async def load(self) -> None:
        """Read credentials and keys. Raises ConfigError and MetadataStoreError."""
        for load in self._loads:
            await load()

    def tasks(self) -> list[Task]:
        """The periodic tasks of the mechanisms."""
        return [task() for task in self._tasks]

    def statistics(self) -> dict[str, AuthenticationStatistics]:
        """A snapshot, by listener."""
        return {name: listener.statistics() for name, listener in self.by_name.items()}

    # ---- mechanisms: their modules are imported when a listener offers them

    def _mechanism(self, settings: MechanismSettings) -> Mechanism:
        how, max_reauth_ms = settings.how, settings.max_reauth_ms
        if isinstance(how, PlainSettings):
            from broker.security.authentication.mechanisms.plain import PlainMechanism

            return PlainMechanism(how, max_reauth_ms, self._checks, self._parts.clock)
        if isinstance(how, ScramSettings):
            return self._scram(settings.name, max_reauth_ms)
        return self._bearer(how, max_reauth_ms)

    def _scram(self, name: str, max_reauth_ms: int) -> Mechanism:
        from broker.security.authentication.mechanisms.scram import ScramServer
        from protocol.sasl.scram import ScramMechanism

        parts = self._parts
        if self._users is None:
            users = self._users = ScramCredentials(parts.store)
            self._loads.append(lambda: users.load(parts.random.getrandbits))
        return ScramServer(
            ScramMechanism(name), max_reauth_ms, self._users, parts.tokens, parts.random.getrandbits
        )

    def _bearer(self, how: SecuredTokens | UnsecuredTokens, max_reauth_ms: int) -> Mechanism:
        from broker.security.authentication.mechanisms.bearer import BearerMechanism, TokenValidator

        parts = self._parts
        validator: TokenValidator
        if isinstance(how, UnsecuredTokens):
            from broker.security.authentication.mechanisms.unsecured_tokens import UnsignedTokens

            validator = UnsignedTokens(how)
        else:
            from broker.security.authentication.mechanisms.issuer_keys import IssuerKeys
            from broker.security.authentication.mechanisms.signed_tokens import SignedTokens

            keys = IssuerKeys(how, parts.web, parts.clock)
            self._loads.append(keys.load)
            self._tasks.append(keys.task)
            validator = SignedTokens(how, keys)
        return BearerMechanism(validator, max_reauth_ms, parts.signatures, parts.clock)
