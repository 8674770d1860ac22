"""Work that may wait is stepped by the drivers alone; everybody else awaits it."""

import ast
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DRIVERS: Final = {
    "storage/waits.py",
    "broker/world/driver.py",
    "broker/world/in_turn.py",
    "broker/network/connection_loop.py",
}
"""`at_once`, the broker's driver, that of the coordinators, and the loop of the connections."""
ROOMS: Final = ("broker", "storage", "config", "protocol", "tools", "pykafkalog", "pipeline")


def steps(tree: ast.AST) -> list[int]:
    """The lines that call `x.send(…)` of one value, or `x.throw(…)`, where `x` is called work."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (node.func.attr == "throw" or (node.func.attr == "send" and _is_work(node.func.value)))
    ]


def _is_work(value: ast.expr) -> bool:
    name = value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", "")
    return name.strip("_") in {"work", "works", "rest", "coroutine"}


def test_only_drivers_step_work_by_hand() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        if steps(ast.parse(path.read_text()))
    }
    assert found == DRIVERS


def test_a_step_by_hand_is_found() -> None:
    assert steps(ast.parse("a = self._work.send(None)\nwaiting.work.throw(e)\nsock.send(b)")) == [
        1,
        2,
    ]
