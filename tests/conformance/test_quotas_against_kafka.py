"""The rates, buckets and the precedence of quotas are Apache Kafka's: its managers are the oracle.

Random quotas are set, and random clients spend, take back and change topics at random times. Kafka
records clients without a quota, this broker does not; so time passes until all is forgotten before
a quota comes or goes.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from broker.quotas.client_quota import ClientQuota, QuotaType
from broker.quotas.entity import ABSENT, DEFAULT, Entity, Name
from broker.quotas.mutation_quota import MutationQuota
from broker.quotas.rate import Windows
from broker.quotas.sanitizer import desanitized, sanitized
from protocol.errors import KafkaError
from tests.support.kafka_jars import java

pytestmark = pytest.mark.conformance

ORACLE = Path(__file__).with_name("QuotaOracle.java")
USERS = ("ann", "bob", "ANONYMOUS")
CLIENT_IDS = ("c1", "c2", "''")
UNLIMITED = 2.0**63
STEPS = 3_000


class Ours:
    """Answers the lines of the oracle's input."""

    def __init__(self, windows: Windows) -> None:
        self.now = 0
        self.bytes = ClientQuota(QuotaType.PRODUCE, windows)
        self.changes = MutationQuota(windows, lambda: self.now)

    def answer(self, line: str) -> str:
        kind, *asked = line.split(" ")
        if kind == "set":
            user, client_id, bound = asked
            entity = Entity(user=written(user), client_id=written(client_id))
            for quota in (self.bytes, self.changes):
                quota.limits.change(entity, None if bound == "none" else float(bound))
            return "ok"
        if kind == "most":
            most = self.bytes.most_at_once(asked[0], named(asked[1]))
            return str(most)
        self.now = int(asked[0])
        user, client_id = asked[1], named(asked[2])
        if kind == "spend":
            return str(self.bytes.spend(user, client_id, float(asked[3]), self.now))
        if kind == "back":
            self.bytes.spend_unchecked(user, client_id, -float(asked[3]), self.now)
            return "ok"
        assert kind == "change"
        charge = self.changes.charge(user, client_id, strict=asked[3] == "true")
        if charge is None:
            return "0"
        try:
            charge(int(asked[4]))
        except KafkaError:
            return f"refused {charge.throttle_ms()}"
        return str(charge.throttle_ms())


def named(text: str) -> str:
    return "" if text == "''" else text


def written(text: str) -> Name:
    return {"-": ABSENT, "*": DEFAULT}.get(text) or named(text)


def scenario(rng: Random) -> Iterator[str]:
    now = 1_000_000
    known: set[tuple[str, str]] = set()
    for _ in range(STEPS):
        if rng.random() < 0.04 or not known:
            pair = rng.choice(("-", "*", *USERS)), rng.choice(("-", "*", *CLIENT_IDS[:2]))
            if pair == ("-", "-"):
                continue
            removed = pair in known and rng.random() < 0.4
            bound = "none" if removed else rng.choice(("1", "10", "500", "1048576", "0.5"))
            if removed or pair not in known:
                now += 20_000  # so that both have forgotten who spent what
                (known.remove if removed else known.add)(pair)
            yield f"set {pair[0]} {pair[1]} {bound}"
        now += rng.choice(
            (0, 0, 1, 7, 100, 333, 999, 1000, 1001, 2500, 9_999, 10_000, 11_000, 30_000)
        )
        client = f"{rng.choice(USERS)} {rng.choice(CLIENT_IDS)}"
        kind = rng.choice(("spend", "spend", "spend", "back", "change", "change", "most"))
        if kind == "spend":
            yield f"spend {now} {client} {rng.choice((0, 1, 20, 5_000, 20_000_000, 0.25))}"
        elif kind == "back":
            yield f"back {now} {client} {rng.choice((1, 20, 5_000))}"
        elif kind == "change":
            strict = rng.choice(("true", "false"))
            yield f"change {now} {client} {strict} {rng.choice((1, 3, 100, 5_000))}"
        else:
            yield f"most {client}"


def ask(windows: Windows, lines: list[str]) -> list[str]:
    asked = "\n".join((f"{windows.samples} {windows.window_ms // 1000}", *lines, ""))
    return java(str(ORACLE), stdin=asked).stdout.splitlines()


@pytest.mark.parametrize("windows", [Windows(), Windows(2, 3_000), Windows(1, 1_000)])
def test_s_qta_1_and_s_qta_2_and_s_qta_4_every_answer_is_that_of_kafkas_managers(
    windows: Windows,
) -> None:
    lines = list(scenario(Random(str(windows))))
    told = ask(windows, lines)
    ours = Ours(windows)
    throttled = refused = 0
    for number, (line, theirs) in enumerate(zip(lines, told, strict=True)):
        answer = ours.answer(line)
        if line.startswith("most"):
            most = float(theirs)
            assert answer == ("None" if most > UNLIMITED else str(most)), (number, line)
        elif answer != theirs:
            raise AssertionError(f"line {number}, {line}: Kafka {theirs}, here {answer}")
        throttled += theirs.isdecimal() and int(theirs) > 0
        refused += theirs.startswith("refused")
    assert throttled > 300
    assert refused > 20


def test_names_are_written_as_kafka_writes_them() -> None:
    names = [chr(code) for code in (*range(1, 0x200), 0x65E5, 0x1F600)]
    names += ["<default>", "CN=ann,O=a b/c", "a~b*c", "%41", "größe", "x" * 300]
    theirs = ask(Windows(), [f"name {name.encode().hex()}" for name in names])
    assert [sanitized(name) for name in names] == theirs
    assert [desanitized(text) for text in theirs] == names
