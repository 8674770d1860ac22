"""The public keys of an issuer of tokens: its JWKS, read from a URL again and again.

Kafka's `RefreshingHttpsJwks`: read every `sasl.oauthbearer.jwks.endpoint.refresh.ms`, after a
failure sooner, with a wait that doubles; and soon if a token names a key that is not known, once a
minute for each such name. Reading is done in a thread; while it fails the last keys count on. At
the start a file must be there; of an issuer that cannot be reached the log tells, and the broker
starts: its clients with other mechanisms are no worse off.
"""

import json
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import jwt

from broker.world.web import Web
from config.definition import ConfigError
from config.sasl_settings import SecuredTokens
from storage.clock import Clock
from storage.task import Task
from storage.waits import call

logger = logging.getLogger(__name__)

ASKED_AGAIN_S: Final = 60.0
"""How long a key that is not there is not asked for again."""
_MOST_ASKED_FOR: Final = 16
_LONGEST_ID: Final = 1000
_READ_SOON_S: Final = 1.0
"""The least time between two readings that tokens have asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerKey:
    """One public key."""

    key_id: str | None
    kind: str
    """RSA, EC or OKP."""
    algorithm: str | None
    """The only one that it is for; None: any of its kind."""
    key: Any
    """The key itself, as `cryptography` has it."""


class IssuerKeys:
    """The keys of one issuer."""

    def __init__(self, settings: SecuredTokens, web: Web, clock: Clock) -> None:
        self.url = settings.jwks_url
        self.keys: tuple[IssuerKey, ...] = ()
        self._settings = settings
        self._web = web
        self._clock = clock
        self._asked_for: OrderedDict[str, float] = OrderedDict()
        self._hurry: Callable[[], None] = lambda: None
        self._failures = 0
        self._read_at = float("-inf")

    async def load(self) -> None:
        """Read the keys for the first time. Raises ConfigError for a file that has none."""
        error = await self._read()
        if error is not None and self.url.startswith("file:"):
            raise ConfigError(f"The keys in {self.url} cannot be used: {error}")

    def task(self) -> Task:
        """The task that reads the keys again."""
        settings = self._settings
        return Task(
            name="jwks-refresh",
            initial_delay_ms=settings.backoff_ms if self._failures else settings.refresh_ms,
            period_ms=settings.refresh_ms,
            run=self._refresh,
            hurry=self._note_hurry,
        )

    def ask_for(self, key_id: str) -> None:
        """A token names this key, which is not known: read the keys soon."""
        now = self._clock.monotonic()
        if len(key_id) > _LONGEST_ID or now - self._read_at < _READ_SOON_S:
            return
        if now < self._asked_for.get(key_id, now):
            return
        self._asked_for[key_id] = now + ASKED_AGAIN_S
        self._asked_for.move_to_end(key_id)
        if len(self._asked_for) > _MOST_ASKED_FOR:
            self._asked_for.popitem(last=False)
        self._hurry()

    def _note_hurry(self, hurry: Callable[[], None]) -> None:
        self._hurry = hurry

    async def _refresh(self) -> int | None:
        """Read the keys; return after how many milliseconds again, None for as usual."""
        if await self._read() is None:
            return None
        wait_ms = self._settings.backoff_ms << min(self._failures - 1, 30)
        return min(wait_ms, self._settings.most_backoff_ms, self._settings.refresh_ms)

    async def _read(self) -> str | None:
        """Read the keys; return what was wrong, None if nothing was."""
        self._read_at = self._clock.monotonic()
        outcome = await call(_keys_at, self._web, self.url)
        if isinstance(outcome, str):
            self._failures += 1
            logger.error("The keys at %s cannot be read: %s", self.url, outcome)
            return outcome
        self._failures = 0
        for key in outcome:
            self._asked_for.pop(key.key_id or "", None)
        self.keys = outcome
        return None


def _keys_at(web: Web, url: str) -> tuple[IssuerKey, ...] | str:
    """The keys at a URL, or why there are none. In a thread."""
    try:
        keys = tuple(parse_keys(web.read(url)))
    except (OSError, ValueError) as error:
        return str(error)
    return keys or "it has no key to verify signatures with"


def parse_keys(document: bytes) -> list[IssuerKey]:
    """Return the keys of a JWKS that verify signatures. Raises ValueError."""
    parsed = json.loads(document)
    listed = parsed.get("keys") if isinstance(parsed, dict) else None
    if not isinstance(listed, list):
        raise ValueError("it is no JWKS: it has no list of keys")
    return [key for key in map(_parse_key, listed) if key is not None]


def _parse_key(data: Any) -> IssuerKey | None:
    """Return a key; None if it is not for signatures, or of no kind that is known."""
    if not isinstance(data, dict) or data.get("use", "sig") != "sig":
        return None
    if data.get("kty") not in ("RSA", "EC", "OKP"):
        return None
    try:
        key = jwt.PyJWK(data)
    except (jwt.PyJWTError, ValueError, KeyError, TypeError) as error:
        logger.warning("A key of a JWKS cannot be used (kid %s): %s", data.get("kid"), error)
        return None
    algorithm = data.get("alg")
    return IssuerKey(
        key_id=key.key_id,
        kind=str(key.key_type),
        algorithm=None if algorithm is None else str(algorithm),
        key=_public(key.key),
    )


def _public(key: Any) -> Any:
    return key.public_key() if hasattr(key, "public_key") else key
