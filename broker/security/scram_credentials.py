"""SCRAM credentials of users, as they are in the metadata tree (`broker.cluster.user_configs`).

They are kept in memory for authentications, which look up one user; users that have changed are
read again before the next answer. Without a listener that offers SCRAM nothing is kept, and the
requests that describe or alter credentials read the tree.

A user who does not exist gets a salt and a count of iterations, too (S-SEC-3, decision 94). They
follow from the name and a secret in the tree, so they are the same after a restart and at every
broker (`broker.security.scram_stand_ins`).
"""

import logging
from collections.abc import Callable, Mapping
from typing import Final

from broker.cluster.changed_nodes import ChangedNodes
from broker.cluster.metadata_store import (
    Create,
    MetadataStore,
    NodeExistsError,
    StoredNode,
)
from broker.cluster.tree_values import (
    USER_CONFIGS,
    BadValueError,
)
from broker.cluster.user_configs import (
    DEFAULT,
    Change,
    change_user_configs,
    configs_in,
    user_configs,
    users,
)
from broker.quotas.sanitizer import desanitized
from broker.security.scram_stand_ins import StandIns
from protocol.sasl.scram import (
    ScramCredential,
    ScramMechanism,
    credential_of_text,
    text_of_credential,
)
from storage.waits import PAUSE

logger = logging.getLogger(__name__)

SECRET_PATH: Final = "/pykafkalog/scram_secret"
"""This broker's own node: Kafka has none of this kind, and ignores what it does not know."""
SECRET_BYTES: Final = 32

Credentials = Mapping[ScramMechanism, ScramCredential]
_NONE: Final[Credentials] = {}


def credentials_in(user: str, configs: Mapping[str, str]) -> dict[ScramMechanism, ScramCredential]:
    """Return the credentials in a user's configs; malformed ones are logged and left out."""
    found = {}
    for mechanism in ScramMechanism:
        text = configs.get(mechanism.value)
        if text is None:
            continue
        try:
            found[mechanism] = credential_of_text(text)
        except ValueError as error:
            logger.error("%s of user %s: %s", mechanism.value, user, error)
    return found


class ScramCredentials:
    """The credentials of all users, for authentications."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._by_user: dict[str, Credentials] = {}
        self._changed = ChangedNodes(
            store, [USER_CONFIGS], what="Credentials", node_of=_user_node, apply=self._apply
        )
        self._for_users = {mechanism: StandIns(mechanism) for mechanism in ScramMechanism}
        self._for_tokens = {mechanism: StandIns(mechanism) for mechanism in ScramMechanism}
        self._secret = b""

    async def load(self, random_bits: Callable[[int], int]) -> None:
        """Read all credentials. Raises MetadataStoreError."""
        self._changed.note(f"{USER_CONFIGS}/{name}" for name in await users(self._store))
        self._secret = await _secret(self._store, random_bits)
        await self._changed.catch_up_if_possible()

    async def _apply(self, path: str, node: StoredNode | None) -> None:
        try:
            configs = configs_in(path, node)
        except BadValueError as error:
            logger.error("%s", error)
            configs = {}
        user = desanitized(path.rpartition("/")[2])
        self._replace(user, credentials_in(user, configs))

    def _replace(self, user: str, found: Credentials) -> None:
        for mechanism, credential in self._by_user.get(user, _NONE).items():
            self._for_users[mechanism].remove(credential)
        for mechanism, credential in found.items():
            self._for_users[mechanism].add(credential)
        if found:
            self._by_user[user] = found
        else:
            self._by_user.pop(user, None)

    async def find(self, mechanism: ScramMechanism, user: str) -> ScramCredential | None:
        """Return the user's credential; None if there is none."""
        await self._changed.catch_up_unless_under_way()
        return self._by_user.get(user, _NONE).get(mechanism)

    def stand_in(
        self, mechanism: ScramMechanism, name: str, *, by_token: bool = False
    ) -> ScramCredential:
        """Return what an unknown user gets: a credential to which nobody knows a password.

        `by_token`: what an unknown delegation token gets. Tokens are all of one shape.
        """
        stand_ins = self._for_tokens if by_token else self._for_users
        return stand_ins[mechanism].stand_in(self._secret, name)


def _user_node(path: str) -> str | None:
    """The node of the user at or above `path`, where the default's quotas are none."""
    name = path.removeprefix(USER_CONFIGS).split("/")
    return f"{USER_CONFIGS}/{name[1]}" if len(name) > 1 and name[1] != DEFAULT else None


async def _secret(store: MetadataStore, random_bits: Callable[[int], int]) -> bytes:
    while True:
        node = await store.get(SECRET_PATH)
        if node is not None:
            return node.value
        secret = random_bits(8 * SECRET_BYTES).to_bytes(SECRET_BYTES, "big")
        try:
            await store.apply([Create(SECRET_PATH, secret)])
        except NodeExistsError:
            continue  # another broker was faster


async def change_credentials(
    store: MetadataStore,
    changes: Mapping[str, tuple[ScramMechanism, ScramCredential | None]],
) -> None:
    """Set one credential of each user, or delete it if it is None; all or none, durably.

    Raises MetadataStoreError.
    """
    await change_user_configs(store, {user: _change(*change) for user, change in changes.items()})


def _change(mechanism: ScramMechanism, credential: ScramCredential | None) -> Change:
    def change(configs: Mapping[str, str]) -> dict[str, str]:
        kept = {name: text for name, text in configs.items() if name != mechanism.value}
        if credential is not None:
            kept[mechanism.value] = text_of_credential(credential)
        return kept

    return change


async def describe_all(store: MetadataStore) -> dict[str, Credentials]:
    """Read the credentials of all users that have some, by name."""
    found = {}
    for name in await users(store):
        user = desanitized(name)
        credentials = await describe(store, user)
        if credentials:
            found[user] = credentials
        await PAUSE
    return found


async def describe(store: MetadataStore, user: str) -> Credentials:
    """Read the credentials of one user. Raises BadValueError."""
    return credentials_in(user, await user_configs(store, user))
