import hmac
from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

from broker.security.scram_stand_ins import (
    MOST_SALT_BYTES,
    MOST_SHAPES,
    USUAL,
    Shape,
    StandIns,
    shape_of,
)
from protocol.sasl.scram import ScramCredential, ScramMechanism, random_text

SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512
SECRET = b"secret"
NAMES = [f"nobody{n}" for n in range(2000)]
RANDOM = Random(1)


def credential(salt: bytes, iterations: int = 4096) -> ScramCredential:
    return ScramCredential(salt, b"k" * 32, b"s" * 32, iterations)


def of_kafka(iterations: int = 4096) -> ScramCredential:
    """A credential as Kafka's tools make it."""
    return credential(random_text(RANDOM.getrandbits).encode(), iterations)


def of_librdkafka(iterations: int = 4096) -> ScramCredential:
    """A credential as confluent-kafka makes it."""
    return credential(RANDOM.randbytes(64), iterations)


def stand_ins(*made: ScramCredential, mechanism: ScramMechanism = SHA_256) -> StandIns:
    after = StandIns(mechanism)
    for one in made:
        after.add(one)
    return after


def told(after: StandIns, names: Iterable[str] = NAMES) -> dict[str, tuple[bytes, int]]:
    """Return the salt and the iterations that each of `names` gets."""
    shown = {name: after.stand_in(SECRET, name) for name in names}
    return {name: (one.salt, one.iterations) for name, one in shown.items()}


def shapes(after: StandIns) -> Counter[Shape]:
    return Counter(shape_of(after.stand_in(SECRET, name)) for name in NAMES)


@pytest.mark.parametrize(
    ("salt", "size"),
    [
        (b"z" * 21, 21),
        (b"z" * 22, 0),
        (b"0" * 26, 0),
        (b"z" * 27, 27),
        (b"A" * 25, 25),
        (b"z" * 25 + b"\n", 26),
        (b"", 0),
        (b"\0" * 64, 64),
        (b"\0" * MOST_SALT_BYTES, MOST_SALT_BYTES),
        (b"\0" * (MOST_SALT_BYTES + 1), MOST_SALT_BYTES),
    ],
)
def test_a_salt_is_a_text_of_kafkas_tools_or_some_bytes(salt: bytes, size: int) -> None:
    assert shape_of(credential(salt, 5000)) == (size, 5000)


@pytest.mark.parametrize(("mechanism", "size"), [(SHA_256, 32), (SHA_512, 64)])
def test_without_users_it_is_as_kafkas_tools_make_it(mechanism: ScramMechanism, size: int) -> None:
    after = stand_ins(mechanism=mechanism)
    assert set(shapes(after)) == {USUAL} == {shape_of(of_kafka())}
    one = after.stand_in(SECRET, "nobody")
    assert len(one.stored_key) == len(one.server_key) == size
    salts = [int(salt, 36) for salt, _ in told(after).values()]
    assert len(set(salts)) == len(NAMES)
    for bit in (0, 64, 129):
        assert 0.45 < sum(salt >> bit & 1 for salt in salts) / len(NAMES) < 0.55
    assert max(salts) < 1 << 130


def test_s_sec_3_each_shape_stands_in_as_often_as_it_exists() -> None:
    made = [of_kafka() for _ in range(6)] + [of_librdkafka(), of_librdkafka(8192), of_kafka(8192)]
    found = shapes(stand_ins(*made))
    assert set(found) == {USUAL, Shape(64, 4096), Shape(64, 8192), Shape(0, 8192)}
    assert 0.62 < found[USUAL] / len(NAMES) < 0.71
    assert all(0.08 < found[shape] / len(NAMES) < 0.14 for shape in set(found) - {USUAL})


def test_s_sec_3_a_rare_shape_is_no_sign_of_a_known_user() -> None:
    found = shapes(stand_ins(of_librdkafka(8192), *(of_kafka() for _ in range(199))))
    assert 2 <= found[Shape(64, 8192)] <= 25


def test_s_sec_3_it_stays_the_same_and_differs_by_name_mechanism_and_secret() -> None:
    made = [of_kafka(), of_librdkafka(8192), of_librdkafka(), of_kafka(5000), of_kafka(5000)]
    after = stand_ins(*made)
    shown = told(after)
    assert told(after) == shown == told(stand_ins(*reversed(made)))
    assert len({salt for salt, _ in shown.values()}) == len(NAMES)
    others = told(stand_ins(*made, mechanism=SHA_512))
    assert not {salt for salt, _ in shown.values()} & {salt for salt, _ in others.values()}
    assert after.stand_in(b"other", "nobody").salt != after.stand_in(SECRET, "nobody").salt


def test_s_sec_3_another_user_moves_few_names_which_look_like_new_passwords() -> None:
    rare = of_librdkafka(8192)
    after = stand_ins(rare, *(of_kafka() for _ in range(19)))
    before = told(after)
    after.add(rare)
    later = told(after)
    moved = [name for name in NAMES if before[name] != later[name]]
    assert 0 < len(moved) < len(NAMES) / 10
    assert {later[name][1] for name in moved} == {8192}
    assert not {before[name][0] for name in moved} & {later[name][0][:26] for name in moved}
    after.remove(rare)
    assert told(after) == before
    after.remove(rare)
    assert set(shapes(after)) == {USUAL}


def test_the_commonest_shapes_are_drawn_from_in_a_fixed_order() -> None:
    made = [credential(b"\1" * size) for size in range(1, 41)]
    after = stand_ins(*reversed(made), made[39])
    drawn = {size for size, _ in shapes(after)}
    assert drawn == {40, *range(1, MOST_SHAPES)}


def test_a_login_costs_a_digest_for_each_shape_and_no_look_at_the_users(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    after = stand_ins(*(credential(b"\1" * size) for size in range(1, 41)))
    after.stand_in(SECRET, "nobody")
    made: list[Any] = []
    digest = hmac.digest

    def counted(*values: Any) -> bytes:
        made.append(values)
        return digest(*values)

    monkeypatch.setattr(hmac, "digest", counted)
    monkeypatch.setattr(after, "_counts", None)
    after.stand_in(SECRET, "nobody")
    assert len(made) == MOST_SHAPES
