"""Rules and decisions that are named exist; a test names every rule and something each decision.

`docs/developing/rules.md` defines the ids (`S-APP-2`: what happens to a batch whose checksum is
wrong), `docs/decisions/README.md` numbers the decisions. The test of a rule bears it in its name
(`test_s_app_2_…`): an id in a comment holds nothing.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "docs" / "developing" / "rules.md"
DECISIONS = ROOT / "docs" / "decisions" / "README.md"
DIFFERENCES = ROOT / "docs" / "differences.md"
ROOMS = (
    "broker",
    "config",
    "pipeline",
    "protocol",
    "publishing",
    "pykafkalog",
    "storage",
    "tls",
    "tools",
)
PAGES = ("CONTRIBUTING.md", "README.md", "CHANGELOG.md", "pyproject.toml")

_ID = re.compile(r"\bS-[A-Z]+-\d+\b")
_DEFINED = re.compile(r"^\* \*\*(S-[A-Z]+-\d+)\*\* ", re.MULTILINE)
_TEST = re.compile(r"\bdef (test_\w+)")
_IN_TEST_NAME = re.compile(r"(?:^test|_and)_s_([a-z]+)_(\d+)(?=_|$)")
_DECISION = re.compile(r"\bdecisions?\s+(\d+)")
_NUMBERED = re.compile(r"^## (\d+)\. ", re.MULTILINE)
_ABBREVIATED = re.compile(r"S-[A-Z]+-\d+(?:\.\.\d|, -\d| to -?\d)")
"""`S-APP-1, -2`: nobody who looks for the second id finds it."""


def texts() -> Iterator[tuple[Path, str]]:
    """Sources, tests and pages with their text, but for this file and the list of rules."""
    files = [ROOT / page for page in PAGES]
    for room in (*ROOMS, "scripts", "tests"):
        files += (ROOT / room).rglob("*.py")
    files += (ROOT / "docs").rglob("*.md")
    for path in sorted(files):
        if path not in (RULES, Path(__file__).resolve()):
            yield path, path.read_text()


def is_test(path: Path) -> bool:
    return path.is_relative_to(ROOT / "tests") and path.name.startswith("test_")


def held_by(text: str) -> set[str]:
    """The ids in the names of test functions."""
    found = [_IN_TEST_NAME.findall(name) for name in _TEST.findall(text)]
    return {f"S-{area.upper()}-{number}" for ids in found for area, number in ids}


def named(text: str) -> set[str]:
    """The ids in a text: spelled out, or in the names of test functions."""
    return set(_ID.findall(text)) | held_by(text)


def defined() -> list[str]:
    return _DEFINED.findall(RULES.read_text())


def test_every_rule_is_defined_once_and_has_a_source() -> None:
    assert [rule for rule, count in Counter(defined()).items() if count > 1] == []
    entries = re.split(r"^(?=\* \*\*S-)", RULES.read_text(), flags=re.MULTILINE)[1:]
    assert len(entries) == len(defined())
    assert [entry.split("**")[1] for entry in entries if "Source:" not in entry] == []


def test_every_rule_that_is_named_is_defined() -> None:
    rules = set(defined())
    missing = {
        str(path.relative_to(ROOT)): sorted(unknown)
        for path, text in texts()
        if (unknown := named(text) - rules)
    }
    assert missing == {}


def test_every_rule_is_in_the_name_of_a_test() -> None:
    held = set().union(*(held_by(text) for path, text in texts() if is_test(path)))
    assert sorted(set(defined()) - held) == []


def test_every_id_is_spelled_out() -> None:
    short = {
        str(path.relative_to(ROOT)): found
        for path, text in texts()
        if (found := _ABBREVIATED.findall(text))
    }
    assert short == {}


def test_every_decision_has_a_number_of_its_own_and_those_that_are_named_exist() -> None:
    numbers = [int(number) for number in _NUMBERED.findall(DECISIONS.read_text())]
    assert numbers == sorted(set(numbers))
    named = {path: {int(number) for number in _DECISION.findall(text)} for path, text in texts()}
    missing = {
        str(path.relative_to(ROOT)): unknown
        for path, some in named.items()
        if (unknown := some - set(numbers))
    }
    assert missing == {}
    # A decision that nothing names is read by nobody: its reason belongs beside the code.
    del named[DECISIONS]
    assert set(numbers) - set().union(*named.values()) == set()


def test_links_to_decisions_lead_somewhere() -> None:
    """The anchors are those that forges make of headings."""
    anchors = {
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^## (.+)$", DECISIONS.read_text(), re.MULTILINE)
    }
    linked = re.findall(r"\(\.\./decisions/README\.md#([^)]+)\)", RULES.read_text())
    linked += re.findall(r"\(decisions/README\.md#([^)]+)\)", DIFFERENCES.read_text())
    assert linked
    assert set(linked) - anchors == set()
