"""Reading the tree in ZooKeeper: pipelined, a missing node being an answer like any other."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from broker.cluster.metadata_store import ANY_VERSION, NodeMissingError, StoredNode
from broker.zookeeper.operations import Tree, refusal_of
from broker.zookeeper.requests import Requests, Waited
from storage.waits import PAUSE

_AT_ONCE: Final = 64
"""Nodes that one request reads."""


class Reads:
    """Reads nodes. Errors are those of `MetadataStore`."""

    def __init__(self, requests: Requests, tree: Tree) -> None:
        self._requests = requests
        self._tree = tree

    async def nodes(self, paths: Sequence[str]) -> list[StoredNode | None]:
        """Value and version of each."""
        answers = await self._read_many(paths, children=False)
        return [None if answer is None else _node(*answer) for answer in answers]

    async def children(self, paths: Sequence[str]) -> list[list[str] | None]:
        """Names of the nodes below each, sorted; None for a node that is not there."""
        answers = await self._read_many(paths, children=True)
        return [None if names is None else sorted(names) for names in answers]

    async def stat(self, path: str) -> Any:
        """ZooKeeper's data about a node (`kazoo.protocol.states.ZnodeStat`), or None."""
        full = self._tree.full(path)
        waited = Waited(partial(_exists, full), path)
        self._requests.begin_all([waited])
        await self._requests.wait_for([waited])
        return _answer(path, waited.value, waited.error)

    async def subtree(self, path: str) -> list[str]:
        """The paths of a node and all below, parents first; none if it is not there."""
        found: list[str] = []
        level = [path]
        while level:
            below: list[str] = []
            for above, names in zip(level, await self.children(level), strict=True):
                if names is not None:
                    found.append(above)
                    below += (f"{above}/{name}" for name in names)
                await PAUSE
            level = below
        return found

    async def _read_many(self, paths: Sequence[str], *, children: bool) -> list[Any]:
        """The answer for each path; None for a node that is not there."""
        slices = [paths[at : at + _AT_ONCE] for at in range(0, len(paths), _AT_ONCE)]
        waited = [
            Waited(
                partial(_multi_read, [self._tree.full(path) for path in some], children), some[0]
            )
            for some in slices
        ]
        self._requests.begin_all(waited)
        await self._requests.wait_for(waited)
        answers: list[Any] = []
        for some, one in zip(slices, waited, strict=True):
            if one.error is not None:
                _answer(some[0], None, one.error)
            for path, answer in zip(some, one.value, strict=True):
                is_error = isinstance(answer, BaseException)
                answers.append(_answer(path, answer, answer if is_error else None))
            await PAUSE
        return answers


def _multi_read(paths: Sequence[str], children: bool, client: Any) -> Any:
    from broker.zookeeper.kazoo_parts import begin_multi_read

    return begin_multi_read(paths, children, client)


def _exists(full: str, client: Any) -> Any:
    return client.exists_async(full)


def _answer(path: str, value: Any, error: BaseException | None) -> Any:
    """The value; None for a node that is not there. Raises MetadataStoreError."""
    if error is None:
        return value
    refusal = refusal_of(path, ANY_VERSION, error)
    if isinstance(refusal, NodeMissingError):
        return None
    raise refusal from error


def _node(value: bytes | None, stat: Any) -> StoredNode:
    return StoredNode(value or b"", stat.version, stat.czxid)
