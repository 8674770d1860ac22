"""The configs of users in the metadata tree: SCRAM credentials, and the quotas of a user.

    /config/users/<user>    {"version":1,"config":{"SCRAM-SHA-256":"salt=…", …}}

The name of a node is the user's, percent-encoded as Kafka does (`Sanitizer`). A change of
credentials keeps the quotas, and the other way round, because one node has both. A change is made
from the node's last version, and again if somebody else has been faster. A node that is there only
for the quotas below it is empty.

Sources: `kafka.zk.AdminZkClient`, `org.apache.kafka.common.utils.Sanitizer` (3.9).
"""

from collections.abc import Callable, Mapping
from typing import Final

from broker.cluster.metadata_store import (
    Create,
    MetadataStore,
    Put,
    StoredNode,
    TreeOperation,
)
from broker.cluster.planned_write import write_planned
from broker.cluster.tree_values import (
    USER_CONFIGS,
    decode_config,
    encode_config,
    user_config_path,
)

Change = Callable[[Mapping[str, str]], Mapping[str, str]]
"""Makes a user's new configs from the old ones."""

DEFAULT: Final = "<default>"
"""The node of quotas for users who have none of their own; no name of a user is encoded so."""


def configs_in(path: str, node: StoredNode | None) -> dict[str, str]:
    """The configs in a user's node. Raises BadValueError."""
    return {} if node is None or not node.value else decode_config(path, node.value)


async def users(store: MetadataStore) -> list[str]:
    """The names of the nodes of users, encoded, without the node of the default quotas."""
    return [name for name in await store.children(USER_CONFIGS) if name != DEFAULT]


async def user_configs(store: MetadataStore, user: str) -> dict[str, str]:
    """A user's configs; none for an unknown user. Raises BadValueError."""
    path = user_config_path(user)
    return configs_in(path, await store.get(path))


async def change_user_configs(store: MetadataStore, changes: Mapping[str, Change]) -> None:
    """Change the configs of several users, all or none.

    Raises BadValueError, and MetadataStoreError if the tree cannot be written.
    """

    async def plan() -> list[TreeOperation]:
        operations: list[TreeOperation] = []
        for user, change in changes.items():
            path = user_config_path(user)
            node = await store.get(path)
            value = encode_config(change(configs_in(path, node)))
            operations.append(
                Create(path, value) if node is None else Put(path, value, node.version)
            )
        return operations

    await write_planned(store, plan)
