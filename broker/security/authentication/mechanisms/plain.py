"""PLAIN: users and passwords of the configuration, or a function that checks them.

Kafka's `PlainSaslServer` and `PlainServerCallbackHandler`, with their words. An unknown user costs
the same work, and gets the same answer, as a wrong password: both are compared by their hashes.

A check of one's own is a function of Python, named `module:function` where Kafka has the name of a
Java class (docs/security.md):

    def function(user: str, password: str) -> bool

It is called in a thread and may wait. If it raises an exception, the client is refused, and the log
gets its type and place once in a while; its text may name the password, so that needs DEBUG.
"""

import hashlib
import hmac
import logging
from collections.abc import Callable, Mapping
from importlib import import_module
from traceback import extract_tb
from typing import Final

from broker.fairness import Lane
from broker.security.authentication.mechanism import Exchange
from broker.security.authentication.outcomes import AuthenticatedUser, Progress, RefusedError
from config.definition import ConfigError, Password
from config.sasl_settings import PLAIN, PlainSettings
from protocol.sasl import MalformedMessage
from protocol.sasl.plain import PlainMessage, parse_plain
from storage.clock import Clock
from storage.logging_limit import LoggingLimit

logger = logging.getLogger(__name__)

Check = Callable[[str, str], bool]

_WRONG: Final = "Authentication failed: Invalid username or password"
_UNVERIFIED: Final = "Authentication failed: credentials for user could not be verified"
_OTHER_ID: Final = (
    "Authentication failed: Client requested an authorization id that is different from username"
)
_NOBODYS: Final = bytes(hashlib.sha256().digest_size)
"""The hash of an unknown user's password: there is none that has it."""


class PlainMechanism:
    """PLAIN, as one listener offers it."""

    name = PLAIN

    def __init__(
        self, settings: PlainSettings, max_reauth_ms: int, lane: Lane, clock: Clock
    ) -> None:
        """Raises ConfigError if the check cannot be imported."""
        self.max_reauth_ms = max_reauth_ms
        self._users = _hashed(settings.users)
        self._check = None if settings.check is None else _imported(settings.check)
        self._lane = lane
        self._logging = LoggingLimit(clock)

    def begin(self) -> Exchange:
        """See `Mechanism`."""
        return _PlainExchange(self)

    async def is_right(self, message: PlainMessage) -> bool:
        """Whether the password is the user's. Raises RefusedError if the check fails."""
        if self._check is None:
            expected = self._users.get(message.user, _NOBODYS)
            return hmac.compare_digest(_hash(message.password), expected)
        outcome = await self._lane.call(_outcome_of, self._check, message.user, message.password)
        if isinstance(outcome, Exception):
            logger.debug("The check of passwords for PLAIN failed", exc_info=outcome)
            failures = self._logging.count_event()
            if failures:
                logger.error(
                    "The check of passwords for PLAIN failed %d times, last with %s",
                    failures,
                    _placed(outcome),
                )
            raise RefusedError(_UNVERIFIED)
        return outcome


class _PlainExchange:
    def __init__(self, mechanism: PlainMechanism) -> None:
        self._mechanism = mechanism

    async def evaluate(self, message: bytes) -> Progress:
        """See `Exchange`: the first message decides."""
        try:
            parsed = parse_plain(message)
        except MalformedMessage as error:
            raise RefusedError(str(error)) from None
        if not await self._mechanism.is_right(parsed):
            raise RefusedError(_WRONG)
        if parsed.authorization_id not in ("", parsed.user):
            raise RefusedError(_OTHER_ID)
        return Progress(b"", AuthenticatedUser(parsed.user))


def _hash(password: str) -> bytes:
    return hashlib.sha256(password.encode()).digest()


def _hashed(users: Mapping[str, Password]) -> dict[str, bytes]:
    return {user: _hash(password.value) for user, password in users.items()}


def _imported(name: str) -> Check:
    module, _, function = name.partition(":")
    try:
        found: Check = getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"The check of passwords {name} cannot be imported: {error}") from error
    if not callable(found):
        raise ConfigError(f"The check of passwords {name} is no function")
    return found


def _outcome_of(check: Check, user: str, password: str) -> bool | Exception:
    """The result of the check, or its exception. Runs in a thread."""
    try:
        return check(user, password) is True
    except Exception as error:  # noqa: BLE001 - a plug-in's failure is one client's refusal
        return error


def _placed(error: Exception) -> str:
    """The type of an exception and the line that raised it, without its text."""
    last = extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {last.filename}, line {last.lineno}"
