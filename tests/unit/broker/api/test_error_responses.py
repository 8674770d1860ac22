"""The answer to a request that fails as a whole, of every API in every version."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any
from unittest.mock import MagicMock

import pytest

from broker.api_facts import Served
from broker.cluster.image import MetadataImage
from broker.registry import APIS, build_handlers
from broker.services import Services
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.registry import request_api, response_api
from protocol.schema.constructs import ArrayOf, Fields
from tests.support.api_calls import context, over_the_wire
from tests.support.filled_requests import filled

CODE = ErrorCode.UNKNOWN_SERVER_ERROR


@cache
def built(is_member: bool) -> Mapping[ApiKey, Served]:
    """All APIs of a broker that stands alone, or is a member of a cluster."""
    services: dict[str, Any] = {name: MagicMock() for name in Services.__dataclass_fields__}
    services |= {"allowed": None, "image": MetadataImage(cluster_id="c" * 22)}
    if not is_member:
        services["cluster"] = None
    return build_handlers(Services(**services))


def answers(served: Served, *, with_null: bool = False) -> Iterator[tuple[int, Any]]:
    """(version, answer) to a request that names everything twice, or has null where it may."""
    key, (first, last) = served.api.key, served.api.versions
    for version in range(first, last + 1):
        request = filled(key, version)
        if key is ApiKey.PRODUCE:
            request.acks = 1  # 0 is for no answer
        if key is ApiKey.ALTER_REPLICA_LOG_DIRS:
            for topic in (topic for asked in request.dirs for topic in asked.topics):
                topic.partitions = [0, 1]  # one that is named twice is answered once
        for name, node in request_api(key).at(version).fields:
            if with_null and isinstance(node, ArrayOf) and node.nullable:
                setattr(request, name, None)
        reply = served.handler.error_response(context(key, version), request, CODE)
        yield version, over_the_wire(key, version, reply)


def codes(node: Fields, answer: Any) -> Iterator[int]:
    """All error codes of an answer; what holds some is there for both of what was named."""
    for name, member in node.fields:
        content = getattr(answer, name)
        if name.endswith("error_code"):
            yield content
        elif isinstance(member, ArrayOf) and isinstance(member.element, Fields):
            found = [code for one in content or () for code in codes(member.element, one)]
            assert not found or len(content) >= 2
            yield from found


@pytest.mark.parametrize("with_null", [False, True])
@pytest.mark.parametrize("is_member", [False, True], ids=["alone", "in a cluster"])
@pytest.mark.parametrize("key", sorted(APIS), ids=lambda key: key.name)
def test_it_has_the_error_of_all_that_was_asked_for(
    key: ApiKey, is_member: bool, with_null: bool
) -> None:
    served = built(is_member).get(key)
    if served is None:
        assert not is_member, "a member serves all"
        return
    for version, answer in answers(served, with_null=with_null):
        found = set(codes(response_api(key).at(version), answer))
        may_be_silent = with_null or (key is ApiKey.DESCRIBE_LOG_DIRS and version < 3)
        assert found == {CODE} or (may_be_silent and not found), version
