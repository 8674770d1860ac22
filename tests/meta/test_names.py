"""One word, one meaning: in broker, storage and config a public class name stands for one class.

Whoever reads `Upkeep` in a signature should not have to look at the imports to know whose it is. So
what two rooms would call by the same name says of what it is (`TransactionUpkeep`), and where Kafka
has a name, that name belongs to what Kafka means by it. A constant that two modules define with the
same name and the same value is one constant, which one of them imports; two constants that only
share a name (`CHUNK`) are each their module's own.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

FORMATS = {"VERSION", "ENTRY_SIZE"}
"""Constants that each file format has of its own, even if their values agree."""
APIS = ("broker/api/", "broker/replication/fetch_session.py")
"""Versions and counts there are of one API, even if those of another agree."""


def _sources(*rooms: str) -> dict[str, str]:
    return {
        str(path.relative_to(ROOT)): path.read_text()
        for room in rooms
        for path in sorted((ROOT / room).rglob("*.py"))
    }


def _classes(source: str) -> Iterator[tuple[str, str]]:
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, ""


def _constants(source: str) -> Iterator[tuple[str, str]]:
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        value = ast.unparse(node.value)
        if value.startswith("TypeVar("):
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name) and target.id.isupper() and target.id[0] != "_":
                yield target.id, value


def _twice(found: Iterable[tuple[str, tuple[str, str]]]) -> dict[str, list[str]]:
    """Names that several files define with the same value, with the files."""
    homes: dict[tuple[str, str], list[str]] = {}
    for path, definition in found:
        homes.setdefault(definition, []).append(path)
    return {name: paths for (name, _), paths in homes.items() if len(paths) > 1}


def classes_twice(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """Public classes of one name, with the files that define them."""
    return _twice((path, found) for path, source in sources.items() for found in _classes(source))


def constants_twice(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """Public constants of one name and value, with the files that define them."""
    return _twice(
        (path, found)
        for path, source in sources.items()
        for found in _constants(source)
        if found[0] not in FORMATS and not path.startswith(APIS)
    )


def test_a_public_class_name_stands_for_one_class() -> None:
    assert classes_twice(_sources("broker", "storage", "config")) == {}


def test_a_public_constant_has_one_home() -> None:
    assert constants_twice(_sources("broker", "storage", "config", "protocol")) == {}


def test_a_second_class_or_constant_of_a_name_is_noticed() -> None:
    sources = {
        "a.py": "class Upkeep: ...\nclass _Own: ...\nHOUR_S: Final = 3600\nCHUNK = 1\n_LOW = 1",
        "b.py": "class Upkeep: ...\nclass _Own: ...\nHOUR_S = 3600\nCHUNK = 2\n_LOW = 1",
    }
    assert classes_twice(sources) == {"Upkeep": ["a.py", "b.py"]}
    assert constants_twice(sources) == {"HOUR_S": ["a.py", "b.py"]}
