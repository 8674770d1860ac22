"""Ten thousand clients are remembered, and no more."""

from broker.quotas.limits import Payer
from broker.quotas.usages import EXPIRY_MS, LONGEST_NAME, MOST, Usages


def made(most: int = MOST) -> Usages[list[int]]:
    return Usages(list, most=most)


def payers(usages: Usages[list[int]], now_ms: int) -> list[Payer]:
    return [payer for payer, _ in usages.remembered(now_ms)]


def test_a_client_has_one_usage() -> None:
    usages = made()
    first = usages.of(Payer("a", "c"), 0)
    first.append(1)
    assert usages.of(Payer("a", "c"), 5) is first
    assert usages.of(Payer("a", ""), 5) is not first
    assert usages.of(Payer("", "c"), 5) == []
    assert len(usages) == 3


def test_s_qta_7_a_client_is_forgotten_after_an_idle_hour() -> None:
    usages = made()
    usages.of(Payer("a", ""), 0)
    usages.of(Payer("b", ""), 10)
    usages.of(Payer("a", ""), 20)
    assert payers(usages, EXPIRY_MS + 10) == [Payer("b", ""), Payer("a", "")]
    assert payers(usages, EXPIRY_MS + 11) == [Payer("a", "")]
    usages.of(Payer("c", ""), 2 * EXPIRY_MS)  # also without anybody who asks
    assert len(usages) == 1


def test_s_qta_7_one_more_takes_the_place_of_the_one_that_was_idle_for_longest() -> None:
    usages = made(3)
    for name in ("a", "b", "c", "a", "d"):
        usages.of(Payer(name, ""), 0)
    assert [user for user, _ in payers(usages, 0)] == ["c", "a", "d"]
    assert usages.evicted == 1


def test_a_flood_of_client_ids_costs_bounded_memory() -> None:
    usages = made()
    for number in range(3 * MOST):
        usages.of(Payer("", f"{number}-" + "x" * 30_000), number)
    found = payers(usages, 3 * MOST)
    assert len(found) == MOST
    assert max(len(payer.client_id) for payer in found) <= LONGEST_NAME
    assert len({payer.client_id for payer in found}) == MOST


def test_long_names_are_told_apart() -> None:
    usages, long = made(), "x" * 1_000
    one, other = usages.of(Payer(long, "c"), 0), usages.of(Payer(long + "y", "c"), 0)
    assert one is not other
    assert usages.of(Payer(long, "c"), 0) is one
    short = "x" * LONGEST_NAME
    assert usages.of(Payer(short, "c"), 0) is not one
    assert Payer(short, "c") in payers(usages, 0)
