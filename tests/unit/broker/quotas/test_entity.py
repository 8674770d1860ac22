import pytest

from broker.quotas.entity import DEFAULT, Entity, entity_at, user_of
from broker.quotas.keys import OF_ADDRESSES, OF_CLIENTS, NumberType, QuotaKey

PATHS = [
    (Entity(user="ann"), "/config/users/ann"),
    (Entity(user=DEFAULT), "/config/users/<default>"),
    (Entity(user="<default>"), "/config/users/%3Cdefault%3E"),
    (Entity(user="CN=a b/c"), "/config/users/CN%3Da%20b%2Fc"),
    (Entity(client_id="c-1"), "/config/clients/c-1"),
    (Entity(client_id=DEFAULT), "/config/clients/<default>"),
    (Entity(user="ann", client_id="c/1"), "/config/users/ann/clients/c%2F1"),
    (Entity(user="ann", client_id=DEFAULT), "/config/users/ann/clients/<default>"),
    (Entity(user=DEFAULT, client_id="c"), "/config/users/<default>/clients/c"),
    (Entity(user=DEFAULT, client_id=DEFAULT), "/config/users/<default>/clients/<default>"),
    (Entity(ip="10.0.0.1"), "/config/ips/10.0.0.1"),
    (Entity(ip="::1"), "/config/ips/::1"),
    (Entity(ip=DEFAULT), "/config/ips/<default>"),
]


@pytest.mark.parametrize(("entity", "path"), PATHS)
def test_s_qta_8_entities_are_nodes_of_kafkas_tree(entity: Entity, path: str) -> None:
    assert entity.path == path
    assert entity_at(path) == entity
    assert Entity.of(entity.parts) == entity


@pytest.mark.parametrize(
    "path",
    ["/config/users", "/config/users/a/clients", "/config/users/a/b/c", "/config/topics/t", "/"],
)
def test_other_nodes_hold_no_quotas(path: str) -> None:
    assert entity_at(path) is None


def test_what_may_be_limited_hangs_on_the_kind_of_entity() -> None:
    assert Entity(user="a").keys is Entity(client_id="c").keys is OF_CLIENTS
    assert Entity(ip="1.2.3.4").keys is OF_ADDRESSES


def test_an_entity_says_who_it_is() -> None:
    assert str(Entity(user="ann", client_id=DEFAULT)) == "user ann, default client-id"


@pytest.mark.parametrize(
    ("principal", "user"),
    [("User:ANONYMOUS", "ANONYMOUS"), ("User:CN=a:b", "CN=a:b"), ("User:", "")],
)
def test_the_user_is_the_name_of_the_principal(principal: str, user: str) -> None:
    assert user_of(principal) == user


@pytest.mark.parametrize("kind", NumberType)
@pytest.mark.parametrize(
    ("flaw", "values"),
    [
        ("Quota q must be greater than 0", (0.0, -1.0, -1e300)),
        ("Quota q must be a finite number", (float("nan"), float("inf"), float("-inf"))),
    ],
    ids=["above nothing", "finite"],
)
def test_s_qta_6_a_quota_is_a_finite_number_above_nothing(
    kind: NumberType, flaw: str, values: tuple[float, ...]
) -> None:
    assert {QuotaKey("q", kind).flaw(value) for value in values} == {flaw}


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (NumberType.INT, 5.0, "5"),
        (NumberType.INT, 2147483647.0, "2147483647"),
        (NumberType.LONG, 1048576.0, "1048576"),
        (NumberType.LONG, 4.0000005, "4"),
        (NumberType.DOUBLE, 12.5, "12.5"),
        (NumberType.DOUBLE, 1e-9, "1e-09"),
    ],
)
def test_s_qta_6_good_values_and_their_texts(kind: NumberType, value: float, text: str) -> None:
    key = QuotaKey("q", kind)
    assert key.flaw(value) is None
    assert key.text(value) == text
    assert float(text) == pytest.approx(value)


@pytest.mark.parametrize(
    ("kind", "value", "flaw"),
    [
        (NumberType.INT, 2147483648.0, "Proposed value for q is too large for an INT."),
        (NumberType.LONG, 1e19, "Proposed value for q is too large for a LONG."),
        (NumberType.INT, 1.5, "q cannot be a fractional value."),
        (NumberType.LONG, 4.00001, "q cannot be a fractional value."),
    ],
)
def test_s_qta_6_values_that_do_not_fit(kind: NumberType, value: float, flaw: str) -> None:
    assert QuotaKey("q", kind).flaw(value) == flaw
