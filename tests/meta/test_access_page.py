"""docs/developing/access.md says what the files of the APIs do: what each API asks for first."""

import re
from pathlib import Path

from broker.registry import APIS
from broker.security.access import DENIED, Operation, ResourceType
from broker.security.authorized_operations import CLUSTER, GROUP, TOPIC
from protocol.api_keys import ApiKey
from protocol.messages.registry import SPECS

PAGE = (Path(__file__).parents[2] / "docs" / "developing" / "access.md").read_text()
ROW = re.compile(r"^\| (\w+) \| (.+) \|$", re.MULTILINE)


def test_s_acl_1_every_api_has_a_row_with_its_access() -> None:
    rows = {
        SPECS[key].message: ", ".join(map(str, api.accesses)) or "–" for key, api in APIS.items()
    }
    assert dict(ROW.findall(PAGE.partition("|---|---|\n")[2])) == rows


def test_only_two_apis_ask_for_nothing() -> None:
    """As far as Kafka is concerned anybody may ask for versions and for the cluster's brokers."""
    free = {ApiKey.API_VERSIONS, ApiKey.DESCRIBE_CLUSTER}
    assert {key for key, api in APIS.items() if not api.accesses} == free


def test_every_operation_that_is_asked_for_is_one_that_the_resource_has() -> None:
    """Kafka's `AclEntry.supportedOperations`, which clients are told as bits (KIP-430)."""
    supported = {
        ResourceType.TOPIC: TOPIC,
        ResourceType.GROUP: GROUP | 1 << Operation.DESCRIBE_CONFIGS | 1 << Operation.ALTER_CONFIGS,
        # ControllerApis.deleteTopics asks for it, though only a super user can have it.
        ResourceType.CLUSTER: CLUSTER | 1 << Operation.DELETE,
        ResourceType.TRANSACTIONAL_ID: 1 << Operation.WRITE | 1 << Operation.DESCRIBE,
    }
    for key, api in APIS.items():
        for access in api.accesses:
            for one in filter(None, (access, access.unless)):
                assert supported[one.resource] >> one.operation & 1, (key, str(one))
                assert one.resource in DENIED
