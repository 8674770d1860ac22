"""Requests that set and describe quotas."""

from typing import Any

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


def entity(**parts: str | None) -> list[AlteredEntityPart]:
    """`user`, `client_id` and `ip`, each a name or None for the default."""
    return [
        AlteredEntityPart(entity_type=kind.replace("_", "-"), entity_name=name)
        for kind, name in parts.items()
    ]


def alteration(
    parts: list[AlteredEntityPart], *removed: str, **values: float
) -> AlterClientQuotasRequest:
    """Set quotas of one entity, and remove those of `removed`."""
    operations = [QuotaOperation(key=key, value=value) for key, value in values.items()]
    operations += [QuotaOperation(key=key, remove=True) for key in removed]
    return AlterClientQuotasRequest(entries=[QuotaAlteration(entity=parts, ops=operations)])


def description(*components: tuple[str, int, str | None], strict: bool = False) -> Any:
    """Describe quotas; components are (type, kind of match, name)."""
    return DescribeClientQuotasRequest(
        components=[
            QuotaFilterComponent(entity_type=kind, match_type=match, match=name)
            for kind, match, name in components
        ],
        strict=strict,
    )


def described(answer: Any) -> dict[tuple[tuple[str, str | None], ...], dict[str, float]]:
    """The values by key of each entity in an answer."""
    assert answer.error_code == 0, answer.error_message
    return {
        tuple(sorted((part.entity_type, part.entity_name) for part in entry.entity)): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries
    }
