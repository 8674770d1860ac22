"""A whole broker answers each client as Apache Kafka 4.4.0 did (tests/golden/access.json).

Kafka's own answers are compared, field by field, by tests/conformance/test_access_against_kafka.py.
"""

import re
from collections.abc import Iterator

import pytest

from broker.registry import APIS
from protocol.api_keys import ApiKey
from tests.answers.access_grants import SETTINGS, grant_sets
from tests.answers.access_record import AccessRecord
from tests.answers.access_requests import forms_of
from tests.support.whole_broker import WholeBroker, whole_broker
from tests.whole.access_table import AccessTable

PLACE = re.compile(r"(\w+) v(\d+) (.+)")
RECORD, NAMES = AccessRecord.read()


def asked_of(key: ApiKey) -> Iterator[tuple[int, str, str, list[list[str]]]]:
    """Yield (version, form, client, facts of Kafka's answers) of an API."""
    for request, client, told in RECORD.items():
        place = PLACE.fullmatch(request)
        assert place is not None
        if place[1] == key.name:
            yield int(place[2]), place[3], NAMES[client], told


@pytest.mark.parametrize("key", APIS, ids=lambda key: key.name)
def test_s_acl_1_answers_to_each_client_have_the_facts_of_kafkas(key: ApiKey) -> None:
    cases = list(asked_of(key))
    assert cases, f"scripts/compare-answers --access --record has not seen {key.name} yet"

    @whole_broker(**SETTINGS)
    async def scenario(broker: WholeBroker) -> None:
        clients = {one.name: one for one in grant_sets()}
        numbers = {name: number for number, name in enumerate(clients)}
        table = AccessTable(broker, list(clients.values()))
        await table.prepare()
        wrong = []
        for version, name, client, theirs in cases:
            (form,) = [one for one in forms_of(key, version) if one.name == name]
            ours = await table.told(key, version, form, numbers[client])
            if ours != theirs:
                wrong.append((version, name, client, theirs, ours))
        assert not wrong, wrong[0]

    scenario()
