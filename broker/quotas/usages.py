"""The usages of the clients with a quota, in bounded number (S-QTA-7).

A client is remembered for an hour after its last request, as Kafka's sensors are. `MOST` are
remembered at once: one more takes the place of the one that was idle for longest. A client that has
been idle for all windows loses only its metrics by that, so no client gains a fresh quota unless
ten thousand others spend within ten seconds. A name that is longer than `LONGEST_NAME` is kept by
its digest.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Final, Generic, TypeVar

from broker.quotas.limits import Payer

Usage = TypeVar("Usage")

MOST: Final = 10_000
"""Clients of one kind of quota."""
EXPIRY_MS: Final = 3_600_000
"""Kafka's `InactiveSensorExpirationTimeSeconds`."""
LONGEST_NAME: Final = 256
_SHOWN: Final = 64


def bounded(payer: Payer) -> Payer:
    """The same payer with names of bounded length."""
    user, client_id = payer
    if len(user) <= LONGEST_NAME and len(client_id) <= LONGEST_NAME:
        return payer
    return Payer(_bounded(user), _bounded(client_id))


def _bounded(name: str) -> str:
    if len(name) <= LONGEST_NAME:
        return name
    digest = blake2b(name.encode(errors="surrogatepass"), digest_size=16).hexdigest()
    return f"{name[:_SHOWN]}...{digest}"


class _Remembered(Generic[Usage]):
    __slots__ = ("last_ms", "usage")

    def __init__(self, usage: Usage) -> None:
        self.usage = usage
        self.last_ms = 0


class Usages(Generic[Usage]):
    """Usages by payer, the one that was idle for longest first. Event loop only."""

    __slots__ = ("_made", "_most", "_new", "evicted")

    def __init__(self, new: Callable[[], Usage], *, most: int = MOST) -> None:
        """`new` makes the usage of a client that is not remembered."""
        self._new = new
        self._most = most
        self._made: OrderedDict[Payer, _Remembered[Usage]] = OrderedDict()
        self.evicted = 0
        """Clients that were forgotten for others."""

    def __len__(self) -> int:
        return len(self._made)

    def of(self, payer: Payer, now_ms: int) -> Usage:
        """The usage of a client that uses its quota now."""
        key = bounded(payer)
        found = self._made.get(key)
        if found is None:
            self._forget_idle(now_ms)
            if len(self._made) >= self._most:
                self._made.popitem(last=False)
                self.evicted += 1
            found = self._made[key] = _Remembered(self._new())
        else:
            self._made.move_to_end(key)
        found.last_ms = now_ms
        return found.usage

    def remembered(self, now_ms: int) -> Iterator[tuple[Payer, Usage]]:
        """The clients that were not idle for an hour."""
        self._forget_idle(now_ms)
        for key, remembered in self._made.items():
            yield key, remembered.usage

    def _forget_idle(self, now_ms: int) -> None:
        made = self._made
        while made:
            key, oldest = next(iter(made.items()))
            if now_ms - oldest.last_ms <= EXPIRY_MS:
                return
            del made[key]
