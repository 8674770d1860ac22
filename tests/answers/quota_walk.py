"""A walk through quotas: it alters entities, keys and values, and describes them by any filter.

Values are far above any use, so that no walk throttles a client.
"""

from collections.abc import Iterator
from random import Random

from protocol.api_keys import ApiKey
from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlteredEntityPart,
    QuotaAlteration,
    QuotaOperation,
)
from protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    QuotaFilterComponent,
)
from tests.answers.walks import Step

NAMES = ("ann", "bob", "a/b <default>", "größe", "")
ADDRESSES = ("10.0.0.1", "::1", "no such host", "")
TYPES = ("user", "client-id", "ip", "user", "client-id", "topic", "")
KEYS = (
    *("producer_byte_rate", "consumer_byte_rate", "request_percentage"),
    *("controller_mutation_rate", "connection_creation_rate", "SCRAM-SHA-256", "retention.ms", ""),
)
VALUES = (1e12, 2e12, 2.0e9, 1e12 + 0.5, 3e9, 1e19, 0.0, -1.0, float("inf"), float("nan"), 1e300)


def quota_walk(rng: Random) -> Iterator[Step]:
    """Alterations, each followed by a description."""
    while True:
        yield _alteration(rng)
        yield _description(rng)


def _name(rng: Random, kind: str) -> str | None:
    return None if rng.random() < 0.25 else rng.choice(ADDRESSES if kind == "ip" else NAMES[:-1])


def _entity(rng: Random) -> list[AlteredEntityPart]:
    usual = (("user",), ("client-id",), ("user", "client-id"), ("ip",), ("client-id", "user"))
    kinds = rng.choice(usual) if rng.random() < 0.85 else rng.choices(TYPES, k=rng.randrange(4))
    return [
        AlteredEntityPart(
            entity_type=kind, entity_name="" if rng.random() < 0.03 else _name(rng, kind)
        )
        for kind in kinds
    ]


def _operations(rng: Random, entity: list[AlteredEntityPart]) -> list[QuotaOperation]:
    is_ip = any(part.entity_type == "ip" for part in entity)
    operations = []
    for _ in range(rng.choice((1, 1, 2, 3, 0))):
        key = "connection_creation_rate" if is_ip else rng.choice(KEYS[:4])
        if rng.random() < 0.15:
            key = rng.choice(KEYS)
        value = rng.choice((2.0e9, 2.1e9) if is_ip else VALUES[:3])
        if rng.random() < 0.15:
            value = rng.choice(VALUES)
        operations.append(QuotaOperation(key=key, value=value, remove=rng.random() < 0.35))
    return operations


def _alteration(rng: Random) -> Step:
    entries = []
    for _ in range(rng.choice((1, 1, 1, 2, 4, 0))):
        entity = _entity(rng)
        entries.append(QuotaAlteration(entity=entity, ops=_operations(rng, entity)))
    request = AlterClientQuotasRequest(entries=entries, validate_only=rng.random() < 0.15)
    return Step(ApiKey.ALTER_CLIENT_QUOTAS, rng.randrange(2), f"alter {request}", lambda s: request)


def _description(rng: Random) -> Step:
    components = []
    for _ in range(rng.choice((0, 1, 1, 2, 2, 3))):
        kind = rng.choice(TYPES[:-2] if rng.random() < 0.9 else TYPES)
        match = rng.choice((0, 0, 1, 2, 2, 0, 3, -1) if rng.random() < 0.1 else (0, 1, 2, 2))
        name = _name(rng, kind) if match == 0 else None
        if rng.random() < 0.05:
            name = rng.choice(NAMES)
        components.append(QuotaFilterComponent(entity_type=kind, match_type=match, match=name))
    request = DescribeClientQuotasRequest(components=components, strict=rng.random() < 0.4)
    text = f"describe {request}"
    return Step(ApiKey.DESCRIBE_CLIENT_QUOTAS, rng.randrange(2), text, lambda s: request)
