"""Names and codes of Kafka's ACLs."""

import pytest

from protocol.acls.vocabulary import (
    SUPPORTED,
    Operation,
    PermissionType,
    ResourceType,
    Word,
    from_code,
    from_name,
    pascal_name,
)


@pytest.mark.parametrize(
    ("word", "name"),
    [
        (ResourceType.TRANSACTIONAL_ID, "TransactionalId"),
        (ResourceType.USER, "User"),
        (Operation.DESCRIBE_CONFIGS, "DescribeConfigs"),
        (Operation.TWO_PHASE_COMMIT, "TwoPhaseCommit"),
        (PermissionType.ALLOW, "Allow"),
    ],
)
def test_s_acl_9_names_in_the_tree(word: Word, name: str) -> None:
    assert pascal_name(word) == name
    for spelled in (name, word.name, name.lower()):
        assert from_name(type(word), spelled) is word  # type: ignore[type-var]


def test_what_nobody_knows() -> None:
    assert from_name(Operation, "Frobnicate") is None
    assert from_code(Operation, 99) is Operation.UNKNOWN
    assert from_code(ResourceType, -3) is ResourceType.UNKNOWN
    assert from_code(ResourceType, 7) is ResourceType.USER


def test_every_type_of_resource_has_operations() -> None:
    assert set(SUPPORTED) == {one for one in ResourceType if one > ResourceType.ANY}
    for operations in SUPPORTED.values():
        assert all(one > Operation.ALL for one in operations)
        assert len(set(operations)) == len(operations)
