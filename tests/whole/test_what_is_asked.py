"""Every handler asks what its API declares, no more and no less (docs/developing/access.md)."""

from typing import Any

import pytest

from broker.registry import APIS
from broker.security.access import Question
from protocol.acls.vocabulary import Operation, ResourceType
from protocol.api_keys import ApiKey
from tests.answers.access_grants import SETTINGS, GrantSet
from tests.answers.access_requests import forms_of
from tests.support.whole_broker import WholeBroker, whole_broker
from tests.whole.access_table import AccessTable

DESCRIBED = frozenset(("operations",))
"""Forms that want the authorized operations, for which a handler asks about all operations."""
TELLING = frozenset((ApiKey.DESCRIBE_TOPIC_PARTITIONS,))
"""APIs that always return the authorized operations."""
OF_THE_KNOWN = frozenset((ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN))
"""APIs that refuse clients which have not authenticated, as these, before they ask."""


@pytest.mark.parametrize("key", APIS, ids=lambda key: key.name)
def test_s_acl_1_handlers_ask_what_their_apis_declare(key: ApiKey) -> None:
    api = APIS[key]
    declared = {
        *api.asks,
        *(Question(one.resource, one.operation) for one in api.accesses),
        *(one.unless for one in api.accesses if one.unless is not None),
    }

    @whole_broker(**SETTINGS)
    async def scenario(broker: WholeBroker) -> None:
        # A handler asks for the alternatives after a denial, and for more after a permission.
        clients = [GrantSet("nothing"), GrantSet("everything", (), tuple(OTHER))]
        clients += [GrantSet(str(one), (one,)) for one in declared]
        table = AccessTable(broker, clients)
        await table.prepare()
        authorizer: Any = broker.server.components.authorizer
        asked: set[Question] = set()
        first, last = api.versions
        for version in sorted({*range(first, last + 1, 5), last}):
            for form in forms_of(key, version):
                for number in range(len(clients)):
                    authorizer._known.clear()
                    await table.told(key, version, form, number)
                    found = {
                        Question(kind, operation)
                        for _, host, operation, kind, _ in authorizer._known
                        if host != "127.0.0.1"
                    }
                    is_told = key in TELLING or form.name in DESCRIBED
                    assert found <= declared or is_told
                    asked |= found & declared
        assert asked == (set() if key in OF_THE_KNOWN else declared)

    scenario()


OTHER = (Question(ResourceType.DELEGATION_TOKEN, Operation.DESCRIBE),)
"""A grant that no API needs: a client that lacks only this one may do everything."""
