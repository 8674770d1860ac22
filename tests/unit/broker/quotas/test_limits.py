"""Which quota holds for a client (KIP-55): tests/conformance compares it with Kafka's own."""

import itertools

import pytest

from broker.quotas.entity import ABSENT, DEFAULT, Entity, Name
from broker.quotas.limits import Payer, QuotaLimits

ROWS: list[tuple[Name, Name, Payer]] = [
    ("ann", "c", Payer("ann", "c")),
    ("ann", DEFAULT, Payer("ann", "c")),
    ("ann", ABSENT, Payer("ann", "")),
    (DEFAULT, "c", Payer("ann", "c")),
    (DEFAULT, DEFAULT, Payer("ann", "c")),
    (DEFAULT, ABSENT, Payer("ann", "")),
    (ABSENT, "c", Payer("", "c")),
    (ABSENT, DEFAULT, Payer("", "c")),
]
"""The most specific first: user and client id of the quota, and who shares it with ann's c."""


@pytest.mark.parametrize("row", range(len(ROWS)))
def test_s_qta_2_the_most_specific_quota_holds(row: int) -> None:
    limits = QuotaLimits()
    for number in reversed(range(row, len(ROWS))):
        user, client_id, _ = ROWS[number]
        limits.change(Entity(user=user, client_id=client_id), number + 1.0)
    payer = limits.payer("ann", "c")
    assert payer == ROWS[row][2]
    assert limits.bound(payer) == row + 1
    for number in range(row, len(ROWS)):  # each removed uncovers the next
        payer = limits.payer("ann", "c")
        assert (payer, limits.bound(payer)) == (ROWS[number][2], number + 1)
        limits.change(Entity(user=ROWS[number][0], client_id=ROWS[number][1]), None)
    assert limits.bound(limits.payer("ann", "c")) is None
    assert len(limits) == 0


@pytest.mark.parametrize(("user", "client_id", "payer"), ROWS)
def test_a_single_quota_holds_for_those_it_names(user: Name, client_id: Name, payer: Payer) -> None:
    limits = QuotaLimits()
    limits.change(Entity(user=user, client_id=client_id), 5)
    assert limits.bound(limits.payer("ann", "c")) == 5
    assert limits.payer("ann", "c") == payer
    for other_user, other_id in itertools.product(("ann", "bob"), ("c", "d")):
        found = limits.bound(limits.payer(other_user, other_id))
        names_both = user in (other_user, DEFAULT, ABSENT) and client_id in (
            other_id,
            DEFAULT,
            ABSENT,
        )
        assert found == (5 if names_both else None)


def test_s_qta_2_an_empty_client_id_has_no_quota() -> None:
    limits = QuotaLimits()
    limits.change(Entity(client_id=DEFAULT), 5)
    assert limits.bound(limits.payer("ann", "")) is None
    assert limits.bound(limits.payer("ann", "c")) == 5


def test_a_quota_may_be_changed_and_removed_twice() -> None:
    limits, entity = QuotaLimits(), Entity(user="ann")
    for bound in (5, 7, None, None, 3):
        limits.change(entity, bound)
        assert limits.bound(limits.payer("ann", "c")) == bound
        assert len(limits) == (bound is not None)
