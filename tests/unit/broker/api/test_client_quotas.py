"""DescribeClientQuotas and AlterClientQuotas over the wire."""

from typing import Any

import pytest

from broker.api.alter_client_quotas import AlterClientQuotasHandler
from broker.api.describe_client_quotas import DescribeClientQuotasHandler
from broker.cluster.client_quotas import ClientQuotas
from broker.quotas.entity import DEFAULT, Entity
from broker.quotas.quotas import Quotas
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from tests.support.api_calls import acall, call
from tests.support.manual_clock import ManualClock
from tests.support.quota_calls import alteration, described, description, entity
from tests.support.stores import open_store

DESCRIBE, ALTER = ApiKey.DESCRIBE_CLIENT_QUOTAS, ApiKey.ALTER_CLIENT_QUOTAS
VERSIONS = (0, 1)
EXACT, OF_DEFAULT, ANY = 0, 1, 2

KNOWN = {
    Entity(user="ann"),
    Entity(user=DEFAULT),
    Entity(user="ann", client_id="c"),
    Entity(user="ann", client_id=DEFAULT),
    Entity(user=DEFAULT, client_id="c"),
    Entity(client_id="c"),
    Entity(client_id=DEFAULT),
    Entity(ip="10.0.0.1"),
    Entity(ip=DEFAULT),
}


class Set:
    """Some quotas, in place of those of a tree."""

    entities = {
        one: {"connection_creation_rate" if "ip" in one.parts else "producer_byte_rate": 5.0}
        for one in KNOWN
    }


def told(
    version: int, *components: tuple[str, int, str | None], strict: bool = False
) -> set[Entity]:
    handler = DescribeClientQuotasHandler(Set())  # type: ignore[arg-type]
    answer = call(handler, DESCRIBE, version, description(*components, strict=strict))
    found = {Entity.of(dict(parts)): values for parts, values in described(answer).items()}
    assert all(Set.entities[one] == values for one, values in found.items())
    return set(found)


def with_types(*kinds: str, exactly: bool = False) -> set[Entity]:
    return {
        one
        for one in KNOWN
        if (set(one.parts) == set(kinds) if exactly else set(kinds) <= set(one.parts))
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_s_qta_6_a_filter_asks_for_types_names_and_defaults(version: int) -> None:
    assert told(version) == KNOWN
    assert told(version, strict=True) == set()
    assert told(version, ("user", ANY, None)) == with_types("user")
    assert told(version, ("user", ANY, None), strict=True) == with_types("user", exactly=True)
    both = ("user", ANY, None), ("client-id", ANY, None)
    assert told(version, *both) == told(version, *both, strict=True)
    assert told(version, *both) == with_types("user", "client-id")
    assert told(version, ("user", EXACT, "ann")) == {
        one for one in KNOWN if one.parts.get("user") == "ann"
    }
    assert told(version, ("user", EXACT, "ann"), strict=True) == {Entity(user="ann")}
    assert told(version, ("user", OF_DEFAULT, None), strict=True) == {Entity(user=DEFAULT)}
    assert told(version, ("user", EXACT, "ann"), ("client-id", OF_DEFAULT, None)) == {
        Entity(user="ann", client_id=DEFAULT)
    }
    assert told(version, ("ip", ANY, None)) == {Entity(ip="10.0.0.1"), Entity(ip=DEFAULT)}
    assert told(version, ("ip", EXACT, "10.0.0.1")) == {Entity(ip="10.0.0.1")}
    assert told(version, ("user", EXACT, "bob")) == set()
    assert told(version, ("user", EXACT, "")) == set()


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("", ANY, None)], ErrorCode.INVALID_REQUEST),
        ([("topic", ANY, None)], ErrorCode.UNSUPPORTED_VERSION),
        ([("user", ANY, None), ("user", EXACT, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([("user", OF_DEFAULT, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", ANY, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", 3, None)], ErrorCode.INVALID_REQUEST),
        ([("user", -1, None)], ErrorCode.INVALID_REQUEST),
        ([("ip", ANY, None), ("user", ANY, None)], ErrorCode.INVALID_REQUEST),
        ([("client-id", ANY, None), ("ip", ANY, None)], ErrorCode.INVALID_REQUEST),
    ],
)
@pytest.mark.parametrize("version", VERSIONS)
def test_s_qta_6_filters_that_make_no_sense(components: Any, code: int, version: int) -> None:
    handler = DescribeClientQuotasHandler(Set())  # type: ignore[arg-type]
    answer = call(handler, DESCRIBE, version, description(*components))
    assert answer.error_code == code
    assert answer.error_message
    assert answer.entries is None


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_is_altered_is_described(version: int) -> None:
    quotas = ClientQuotas(await open_store(), Quotas(ManualClock()))
    alter, describe = AlterClientQuotasHandler(quotas), DescribeClientQuotasHandler(quotas)
    wanted = alteration(entity(user="ann", client_id=None), producer_byte_rate=1024.0)
    wrong = alteration(entity(user="ann"), producer_byte_rate=-1.0)
    request = AlterClientQuotasRequest(entries=[*wanted.entries, *wrong.entries])
    answer = await acall(alter, ALTER, version, request)
    codes = {tuple(part.entity_type for part in one.entity): one for one in answer.entries}
    done, refused = codes["client-id", "user"], codes["user",]
    assert (done.error_code, done.error_message) == (0, None)
    assert {part.entity_name for part in done.entity} == {"ann", None}
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert refused.error_message == "Quota producer_byte_rate must be greater than 0"
    found = described(await acall(describe, DESCRIBE, version, description()))
    assert found == {(("client-id", None), ("user", "ann")): {"producer_byte_rate": 1024}}
    request = alteration(entity(user="ann", client_id=None), "producer_byte_rate")
    request.validate_only = True
    await acall(alter, ALTER, version, request)
    assert described(await acall(describe, DESCRIBE, version, description())) == found
    request.validate_only = False
    await acall(alter, ALTER, version, request)
    assert described(await acall(describe, DESCRIBE, version, description())) == {}
