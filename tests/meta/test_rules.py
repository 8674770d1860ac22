"""Every rule of Kafka's behaviour that this broker claims to follow is held by a test naming it.

The ids are the project's own short names for rules of Kafka (`S-APP-2`: what happens to a batch
whose CRC is wrong). A test names a rule in its name (`test_s_app_2_…`) or its docstring.
"""

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]

# Left out on purpose: S-READ-8 (throttled replicas) comes with replication, S-TS-7 (a topic in a
# format before 0.10) with `message.format.version`, which Kafka itself has dropped.
CLAIMED = {
    "S-START": range(1, 8),
    "S-FMT": range(1, 6),
    "S-CFG": range(1, 7),
    "S-NET": (1,),
    "S-APP": range(1, 13),
    "S-ROLL": range(1, 5),
    "S-IDX": range(1, 9),
    "S-READ": (1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12),
    "S-TS": range(1, 7),
    "S-RET": range(1, 10),
    "S-FL": range(1, 5),
    "S-REC": range(1, 12),
    "S-CMP": range(1, 16),
    "S-IDEM": range(1, 4),
    "S-TXN": range(1, 8),
    "S-GRP": range(1, 8),
    "S-META": (1, 2),
    "S-TIME": (1,),
}


def named_rules() -> set[str]:
    """Ids that appear in test functions' names or in the text of test files."""
    found = set()
    for path in TESTS.rglob("test_*.py"):
        if path == Path(__file__).resolve():
            continue
        text = path.read_text()
        found |= set(re.findall(r"S-[A-Z]+-\d+", text))
        for room, number in re.findall(r"def test_s_([a-z]+)_(\d+)", text):
            found.add(f"S-{room.upper()}-{number}")
    return found


def test_every_claimed_rule_is_named_by_a_test() -> None:
    claimed = {f"{room}-{number}" for room, numbers in CLAIMED.items() for number in numbers}
    missing = sorted(claimed - named_rules())
    assert missing == []
