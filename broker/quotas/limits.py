"""The quotas that are set for one key, and which of them holds for a client (KIP-55, S-QTA-2).

A client is a user and a client id. The most specific quota holds, the first of

    1. user and client id      4. default user and client id          7. client id
    2. user, default client id 5. default user, default client id     8. default client id
    3. user                    6. default user

A client with a quota of rows 1, 2, 4, 5 shares it with those of the same user and client id, of
rows 3 and 6 with those of the same user, of rows 7 and 8 with those of the same client id: they are
one `Payer`. As in Kafka, an empty client id has no quota of its own, not even the default one.

Source: `ClientQuotaManager.DefaultQuotaCallback`.
"""

from typing import Final, NamedTuple

from broker.quotas.entity import ABSENT, DEFAULT, Entity, Name


class Payer(NamedTuple):
    """The clients that share one quota. An empty name stands for any user or any client id."""

    user: str
    client_id: str


_USER: Final = 1
_CLIENT_ID: Final = 2
_BOTH: Final = _USER | _CLIENT_ID

_Pair = tuple[Name, Name]


class QuotaLimits:
    """The quotas of one key. Event loop only."""

    __slots__ = ("_kinds", "_set")

    def __init__(self) -> None:
        self._set: dict[_Pair, float] = {}
        """By (user, client id)."""
        self._kinds = dict.fromkeys((_USER, _CLIENT_ID, _BOTH), 0)
        """How many quotas are set for users, for client ids and for both together."""

    def __len__(self) -> int:
        return len(self._set)

    def change(self, entity: Entity, bound: float | None) -> None:
        """Set a quota; None removes it."""
        pair = (entity.user, entity.client_id)
        kind = (_USER if pair[0] is not ABSENT else 0) | (
            _CLIENT_ID if pair[1] is not ABSENT else 0
        )
        self._kinds[kind] += (bound is not None) - (pair in self._set)
        if bound is None:
            self._set.pop(pair, None)
        else:
            self._set[pair] = bound

    def payer(self, user: str, client_id: str) -> Payer:
        """The clients that share the quota of this client, whether or not there is one."""
        kinds = self._kinds
        if not kinds[_BOTH]:
            if not kinds[_USER]:
                return Payer("", client_id)
            if not kinds[_CLIENT_ID]:
                return Payer(user, "")
        elif not (kinds[_USER] or kinds[_CLIENT_ID]):
            return Payer(user, client_id)
        known = self._set
        if (user, client_id) in known or (user, DEFAULT) in known:  # 1, 2
            return Payer(user, client_id)
        if (user, ABSENT) in known:  # 3
            return Payer(user, "")
        if (DEFAULT, client_id) in known or (DEFAULT, DEFAULT) in known:  # 4, 5
            return Payer(user, client_id)
        if (DEFAULT, ABSENT) in known:  # 6
            return Payer(user, "")
        return Payer("", client_id)  # 7, 8

    def bound(self, payer: Payer) -> float | None:
        """The quota of a payer; None if it has none."""
        user, client_id = payer
        pairs: tuple[_Pair, ...] = ()
        if user and client_id:
            pairs = (
                (user, client_id),
                (user, DEFAULT),
                (DEFAULT, client_id),
                (DEFAULT, DEFAULT),
            )
        elif user:
            pairs = ((user, ABSENT), (DEFAULT, ABSENT))
        elif client_id:
            pairs = ((ABSENT, client_id), (ABSENT, DEFAULT))
        for pair in pairs:
            found = self._set.get(pair)
            if found is not None:
                return found
        return None
