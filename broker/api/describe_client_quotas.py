"""DescribeClientQuotas (key 48): the quotas of users, client ids and addresses (KIP-546).

Behaviour (S-QTA-6)
* A filter has a component per type of entity: an exact name, the default, or any of the type. Told
  are entities that have all of them; with `strict` only those that have no other type.
* INVALID_REQUEST for a type twice, an empty type, a match that does not fit its kind, an unknown
  kind of match, and addresses together with users or client ids; UNSUPPORTED_VERSION for a type
  that there is not.
"""

from collections.abc import Callable, Iterable
from typing import Final

from broker import many
from broker.api_facts import Api
from broker.cluster.client_quotas import ClientQuotas
from broker.quotas.entity import IP, TYPES
from broker.request import RequestContext
from broker.security.access import Access, Operation, ResourceType
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribedQuotas,
    QuotaEntityPart,
    QuotaFilterComponent,
    QuotaValue,
)
from storage.waits import PAUSE

API: Final = Api(
    key=ApiKey.DESCRIBE_CLIENT_QUOTAS,
    versions=(0, 1),
    most_elements=1_000,
    # KafkaApis.handleDescribeClientQuotasRequest
    accesses=(Access(ResourceType.CLUSTER, Operation.DESCRIBE_CONFIGS),),
    make=lambda s: DescribeClientQuotasHandler(s.client_quotas),
)

EXACT: Final = 0
DEFAULT: Final = 1
ANY: Final = 2

_Matches = Callable[[str | None], bool]
"""Whether the filter selects the name of an entity's part (None: the default)."""


class DescribeClientQuotasHandler:
    """Describes the quotas in the metadata tree that a filter selects."""

    def __init__(self, quotas: ClientQuotas) -> None:
        self._quotas = quotas

    async def __call__(
        self, ctx: RequestContext, request: DescribeClientQuotasRequest
    ) -> DescribeClientQuotasResponse:
        """The response, at once."""
        try:
            asked = _filter(request.components)
        except KafkaError as error:
            return DescribeClientQuotasResponse(
                error_code=error.code, error_message=str(error), entries=None
            )
        found: list[tuple[dict[str, str | None], dict[str, float]]] = []
        for entity, values in list(self._quotas.entities.items()):
            parts = entity.parts
            if _is_asked_for(parts, asked, strict=request.strict):
                found.append((parts, values))
            await PAUSE
        ctx.large |= len(found) > many.MANY
        return DescribeClientQuotasResponse(entries=many.results(found, _described))

    def error_response(
        self, ctx: RequestContext, request: DescribeClientQuotasRequest, code: ErrorCode
    ) -> DescribeClientQuotasResponse:
        """The code."""
        return DescribeClientQuotasResponse(error_code=code, error_message=code.text, entries=None)


def _is_asked_for(
    parts: dict[str, str | None], asked: dict[str, _Matches], *, strict: bool
) -> bool:
    if strict and len(parts) != len(asked):
        return False
    return all(kind in parts and matches(parts[kind]) for kind, matches in asked.items())


def _filter(components: Iterable[QuotaFilterComponent]) -> dict[str, _Matches]:
    """The condition for a name, by type. Raises KafkaError."""
    asked: dict[str, _Matches] = {}
    for component in components:
        kind = component.entity_type
        if not kind:
            raise _invalid("Invalid empty entity type.")
        if kind in asked:
            raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in TYPES:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        asked[kind] = _matches(component)
    if IP in asked and len(asked) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )
    return asked


def _matches(component: QuotaFilterComponent) -> _Matches:
    wanted = component.match
    if component.match_type == EXACT:
        if wanted is None:
            raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
        return lambda name: name == wanted
    names = {DEFAULT: "MATCH_TYPE_DEFAULT", ANY: "MATCH_TYPE_SPECIFIED"}
    if component.match_type not in names:
        raise _invalid(f"Unknown match type {component.match_type}")
    if wanted is not None:
        raise _invalid(
            f"Request specified {names[component.match_type]}, but also specified a match string."
        )
    if component.match_type == DEFAULT:
        return lambda name: name is None
    return lambda name: True


def _described(found: tuple[dict[str, str | None], dict[str, float]]) -> DescribedQuotas:
    parts, values = found
    return DescribedQuotas(
        entity=[
            QuotaEntityPart(entity_type=kind, entity_name=name) for kind, name in parts.items()
        ],
        values=[QuotaValue(key=key, value=value) for key, value in values.items()],
    )


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
