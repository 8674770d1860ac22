"""docs/developing/access.md says what the files of the APIs do: what each asks an authorizer."""

import re
from pathlib import Path

from broker.registry import APIS, cluster_apis
from broker.security.access import DENIED, Operation, Question, ResourceType
from protocol.acls.vocabulary import SUPPORTED
from protocol.api_keys import ApiKey
from protocol.messages.registry import SPECS

PAGE = (Path(__file__).parents[2] / "docs" / "developing" / "access.md").read_text()
ROW = re.compile(r"^\| (\w+) \| (.+) \| (.+) \|$", re.MULTILINE)


def test_s_acl_1_every_api_has_a_row_with_what_it_asks() -> None:
    rows = {
        (
            SPECS[key].message,
            ", ".join(map(str, api.accesses)) or "–",
            ", ".join(map(str, api.asks)) or "–",
        )
        for key, api in (APIS | cluster_apis()).items()
    }
    assert set(ROW.findall(PAGE.partition("|---|---|---|\n")[2])) == rows


def test_few_apis_ask_for_nothing() -> None:
    """Anybody may ask for versions; who somebody is comes before what he may do.

    Tokens are renewed and ended by their owners and renewers, whatever the rules say.
    """
    free = {key for key, api in APIS.items() if not api.accesses and not api.asks}
    assert free == {
        ApiKey.API_VERSIONS,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
    }


def test_every_operation_that_is_asked_for_is_one_that_the_resource_has() -> None:
    """The table is Kafka's `AclEntry.supportedOperations`; clients get it as bits (KIP-430)."""
    # ControllerApis.deleteTopics asks for it, though only ALL and super users have it.
    everything = {(ResourceType.CLUSTER, Operation.DELETE)}
    everything |= {(kind, one) for kind, operations in SUPPORTED.items() for one in operations}
    for key, api in APIS.items():
        asked: list[Question] = [*api.asks]
        for access in api.accesses:
            asked.append(Question(access.resource, access.operation))
            if access.unless is not None:
                assert access.unless.resource is ResourceType.CLUSTER
                asked.append(access.unless)
        assert set(asked) <= everything, key
        assert {one.resource for one in asked} <= set(DENIED)
