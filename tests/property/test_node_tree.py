"""The metadata tree against the obvious model: a dict of paths."""

from hypothesis import given
from hypothesis import strategies as st

from broker.cluster.metadata_store import (
    Create,
    Delete,
    MetadataStoreError,
    NodeExistsError,
    NodeMissingError,
    NodeNotEmptyError,
    Put,
    TreeOperation,
    VersionMismatchError,
)
from broker.cluster.node_tree import NodeTree, Planning
from storage.waits import at_once

names = st.sampled_from(["a", "b", "c"])
paths = st.lists(names, min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))
values = st.binary(max_size=2)
operations = st.one_of(
    st.builds(Create, paths, values),
    st.builds(Put, paths, values, st.sampled_from([-1, 0, 1])),
    st.builds(Delete, paths, st.sampled_from([-1, 0]), st.booleans()),
)


def apply_to_model(model: dict[str, tuple[bytes, int]], operation: TreeOperation) -> None:
    path = operation.path
    below = [other for other in model if other.startswith(path + "/")]
    match operation:
        case Create():
            if path in model:
                raise NodeExistsError(path, "")
            parts = path.split("/")[1:]
            for depth in range(1, len(parts)):
                model.setdefault("/" + "/".join(parts[:depth]), (b"", 0))
            model[path] = (operation.value, 0)
        case Delete(recursive=True):
            if path in model and operation.version not in (-1, model[path][1]):
                raise VersionMismatchError(path, "")
            for other in [*below, path]:
                model.pop(other, None)
        case _:
            if path not in model:
                raise NodeMissingError(path, "")
            if operation.version not in (-1, model[path][1]):
                raise VersionMismatchError(path, "")
            if isinstance(operation, Put):
                model[path] = (operation.value, model[path][1] + 1)
            elif below:
                raise NodeNotEmptyError(path, "")
            else:
                del model[path]


@given(st.lists(st.lists(operations, min_size=1, max_size=4), max_size=12))
def test_the_tree_agrees_with_a_dict(batches: list[list[TreeOperation]]) -> None:
    tree = NodeTree()
    model: dict[str, tuple[bytes, int]] = {}
    for batch in batches:
        attempt = dict(model)
        expected: type[Exception] | None = None
        try:
            for operation in batch:
                apply_to_model(attempt, operation)
        except MetadataStoreError as error:
            expected = type(error)
        try:
            planning = Planning(tree)
            at_once(planning.plan(batch))
        except MetadataStoreError as error:
            assert type(error) is expected
            continue
        assert expected is None
        model = attempt
        at_once(tree.install(planning.changes))
        tree._check()
        for path in model:
            node = tree.get(path)
            assert node is not None
            assert (node.value, node.version) == model[path]
        below_root = sorted(path[1:] for path in model if path.count("/") == 1)
        assert tree.children("") == below_root
