"""The seams hold: engine code sees neither the clock nor the disk but through what it is handed."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENGINE = ("config", "protocol", "storage", "broker")
ALLOWED = {
    "storage/os_filesystem.py": {"os", "open", "fcntl", "mmap", "shutil"},  # the disk itself
    "broker/world/clock.py": {"time"},  # the clock itself
    "broker/world/machine.py": {"os"},  # the priority of child processes
    "broker/world/sockets.py": {"os"},  # os.sendfile
    "broker/__main__.py": {"os"},  # the process: its environment, its immediate end
}
"""File to the forbidden names it may use, with the reason."""
FORBIDDEN_IMPORTS = {"time", "os", "shutil", "tempfile", "fcntl", "mmap", "datetime", "glob"}
FORBIDDEN_CALLS = {"open"}


def engine_files() -> list[Path]:
    return sorted(path for room in ENGINE for path in (ROOT / room).rglob("*.py"))


def forbidden_uses(source: str) -> set[str]:
    """Forbidden modules imported and forbidden builtins called in a module's source."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names} & FORBIDDEN_IMPORTS
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found |= {(node.module or "").split(".")[0]} & FORBIDDEN_IMPORTS
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found |= {node.func.id} & FORBIDDEN_CALLS
    return found


def test_engine_code_uses_no_clock_and_no_disk_of_its_own() -> None:
    files = engine_files()
    assert len(files) > 20
    uses = {str(path.relative_to(ROOT)): forbidden_uses(path.read_text()) for path in files}
    wrong = {name: found - ALLOWED.get(name, set()) for name, found in uses.items()}
    assert {name: found for name, found in wrong.items() if found} == {}


def test_the_check_finds_what_it_looks_for() -> None:
    assert forbidden_uses("import os.path\nfrom time import sleep\nopen('x')") == {
        "os",
        "time",
        "open",
    }
    assert forbidden_uses("fs.open('x')\nimport struct") == set()
