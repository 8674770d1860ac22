"""docs/developing/access.md says what the registry does: what each API asks for first."""

import re
from pathlib import Path

from broker.api import accesses
from broker.api.authorized_operations import CLUSTER, GROUP, TOPIC
from broker.api.registry import ADVERTISED, TABLE
from broker.security.access import DENIED, Operation, ResourceType
from protocol.api_keys import ApiKey
from protocol.messages.registry import SPECS

PAGE = (Path(__file__).parents[2] / "docs" / "developing" / "access.md").read_text()
ROW = re.compile(r"^\| (\w+) \| (.+) \|$", re.MULTILINE)


def test_s_acl_1_every_api_has_a_row_with_its_access() -> None:
    rows = {SPECS[row.key].message: ", ".join(map(str, row.access)) or "–" for row in TABLE}
    assert dict(ROW.findall(PAGE.partition("|---|---|\n")[2])) == rows
    assert len(rows) == len(ADVERTISED)


def test_every_row_has_the_access_of_its_own_api_and_only_two_have_none() -> None:
    """As far as Kafka is concerned anybody may ask for versions and for the cluster's brokers."""
    free = {ApiKey.API_VERSIONS, ApiKey.DESCRIBE_CLUSTER}
    assert {row.key for row in TABLE if not row.access} == free
    for row in TABLE:
        if row.key not in free:
            assert row.access is getattr(accesses, row.key.name)


def test_every_operation_that_is_asked_for_is_one_that_the_resource_has() -> None:
    """Kafka's `AclEntry.supportedOperations`, which clients are told as bits (KIP-430)."""
    supported = {
        ResourceType.TOPIC: TOPIC,
        ResourceType.GROUP: GROUP | 1 << Operation.DESCRIBE_CONFIGS | 1 << Operation.ALTER_CONFIGS,
        # ControllerApis.deleteTopics asks for it, though only a super user can have it.
        ResourceType.CLUSTER: CLUSTER | 1 << Operation.DELETE,
        ResourceType.TRANSACTIONAL_ID: 1 << Operation.WRITE | 1 << Operation.DESCRIBE,
    }
    for row in TABLE:
        for access in row.access:
            for one in filter(None, (access, access.unless)):
                assert supported[one.resource] >> one.operation & 1, (row.key, str(one))
                assert one.resource in DENIED
