"""Quix Streams, exactly once: a count by key with state, over kills of application and broker."""

import json
import random
from collections import Counter, defaultdict
from pathlib import Path

from tests.support.ecosystem.environments import python
from tests.support.ecosystem.processes import ProgramProcess
from tests.support.ecosystem.records import PATIENCE_S, Found, Tail, send
from tests.support.either_broker import EitherBroker
from tests.support.topics import make_topic

PROGRAM = Path(__file__).parent / "programs/quix_counter.py"
RECORDS, KEYS, PARTITIONS = 3000, 50, 3


def assert_counts(records: list[Found], expected: Counter[bytes]) -> None:
    """For each key 1, 2, 3, … without gap or repeat, in the order of its partition."""
    counts = defaultdict(list)
    for record in records:
        counts[record.key].append(json.loads(record.value or b"{}")["count"])
    assert counts == {key: list(range(1, count + 1)) for key, count in expected.items()}


def test_counts_by_key_are_exact_over_kills_of_application_and_broker(
    broker: EitherBroker, tmp_path: Path
) -> None:
    draw = random.Random(11)
    keys = [b"key%d" % draw.randrange(KEYS) for _ in range(RECORDS)]
    records = [(key, json.dumps({"id": at}).encode()) for at, key in enumerate(keys)]
    make_topic(broker.bootstrap, "in", "out", partitions=PARTITIONS)
    words = [python("quixstreams"), str(PROGRAM), broker.bootstrap, "in", "out", "state"]
    third = RECORDS // 3
    with (
        ProgramProcess(tmp_path / "quix", words) as app,
        Tail(broker.bootstrap, "out", PARTITIONS) as out,
    ):
        send(broker.bootstrap, "in", records[:third])
        app.wait_until(out.at_least(third // 2), PATIENCE_S, "the first third is being counted")
        app.kill()
        send(broker.bootstrap, "in", records[third : 2 * third])
        app.start()
        app.wait_until(out.at_least(third + third // 2), PATIENCE_S, "it goes on after a kill")
        broker.kill()
        broker.start()
        send(broker.bootstrap, "in", records[2 * third :])
        app.wait_until(out.at_least(RECORDS), PATIENCE_S, "all are counted")
        app.stop()
        out.nothing_more()
        assert_counts(out.records, Counter(keys))
        assert {json.loads(record.value or b"")["id"] for record in out.records} == set(
            range(RECORDS)
        )
