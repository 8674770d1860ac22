"""Makes the tables of programs from the results of their last run: `scripts/ecosystem-table`."""

import json
from pathlib import Path
from typing import Any, Final

from tests.support.ecosystem.programs import PROGRAMS
from tests.support.installation import ROOT

RESULTS: Final = ROOT / "docs/ecosystem.json"
BEGIN: Final = "<!-- programs: made by scripts/ecosystem-table -->"
END: Final = "<!-- end of programs -->"


def short_table(results: dict[str, Any]) -> str:
    """Return the table of the README: name and version."""
    lines = ["| program | version | |", "|---|---|---|"]
    for program in PROGRAMS:
        said = results.get(program.name)
        if said is not None:
            lines.append(f"| {program.name} | {said['version']} | {_verdict(said)} |")
    return "\n".join(lines)


def long_table(results: dict[str, Any]) -> str:
    """Return the table of docs/ecosystem.md: what was done, by which tests, and when."""
    lines = ["| program | version | what is tried | tests | last run |", "|---|---|---|---|---|"]
    for program in PROGRAMS:
        said = results.get(program.name)
        if said is not None:
            files = ", ".join(f"[{Path(file).stem}](../{file})" for file in program.tests)
            cells = (program.name, said["version"], program.tried, files)
            lines.append(f"| {' | '.join(cells)} | {said['date']}: {_verdict(said)} |")
    return "\n".join(lines)


def _verdict(said: dict[str, Any]) -> str:
    passed, tests = said["passed"], said["tests"]
    return "works" if passed == tests else f"**{tests - passed} of {tests} tests fail**"


PAGES: Final = {ROOT / "README.md": short_table, ROOT / "docs/ecosystem.md": long_table}
"""Pages that have a table between `BEGIN` and `END`."""


def with_table(page: str, table: str) -> str:
    """Return the page with this table in it. Raises ValueError if it has no place for one."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no {BEGIN} … {END}")
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def main() -> None:
    """Write the tables into all pages."""
    results = json.loads(RESULTS.read_text())
    for path, table in PAGES.items():
        path.write_text(with_table(path.read_text(), table(results)))


if __name__ == "__main__":
    main()
