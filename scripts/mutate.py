"""Do the tests bite? Change one line in a copy of the tree and see whether a test fails.

  scripts/mutate storage broker/coordinator              50 changes, drawn from seed 1
  scripts/mutate storage --count 200 --seed 7            others, and more of them
  scripts/mutate storage/recovery.py --count 0           every change that can be made there
  scripts/mutate storage --list --count 20               lists the changes; runs nothing

A change is a comparison turned or shifted by one, `and` for `or`, + for -, a number one greater, a
condition negated, a call, an assignment or a returned value left out. Messages, logging and
assertions are left alone. Tests run nearest first, until one fails or takes longer than --timeout,
which kills the change: the file that mirrors the changed one, those that import it, then the others
in its folder of tests/unit. `--also` names folders to run behind these.

A table shows each survivor with its diff. Either the rule that the line holds has no test (write
one, and see it fail with the change), or the change makes no difference, or the line is not needed.
The exit code is 0 whatever survives. (mutmut and cosmic-ray draw no sample, keep a database of all
changes, and run the whole suite, or what a configuration names, for each.)
"""

import argparse
import ast
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from random import Random

ROOT = Path(__file__).resolve().parents[1]
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", "build", "__pycache__", ".*_cache", "*.egg-info"
)
OTHERS: dict[type[ast.AST], ast.AST] = {
    one: other()
    for pair in (
        *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot)),
        *((ast.In, ast.NotIn), (ast.Add, ast.Sub), (ast.Mult, ast.FloorDiv)),
        *((ast.BitAnd, ast.BitOr), (ast.LShift, ast.RShift), (ast.And, ast.Or)),
    )
    for one, other in (pair, pair[::-1])
} | {ast.Mod: ast.FloorDiv()}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "abs": ""}
LEFT_ALONE = (ast.Assert, ast.JoinedStr, ast.Raise, ast.arg)
NAMES_LEFT_ALONE = {"__repr__", "__str__", "_check", "_check_order", "__slots__", "_log", "logger"}


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change: the bytes `first .. last` of a line become `text`."""

    path: str
    line: int
    first: int
    last: int
    text: str

    def changed(self, source: str) -> tuple[str, str, str]:
        """Return the line before and after, and the whole source with the change."""
        lines = source.splitlines(keepends=True)
        before = lines[self.line - 1]
        line = before.encode()
        after = (line[: self.first] + self.text.encode() + line[self.last :]).decode()
        lines[self.line - 1] = after
        return before.strip(), after.strip(), "".join(lines)

    def __str__(self) -> str:
        before, after, _ = self.changed((ROOT / self.path).read_text())
        return f"{self.path}:{self.line}\n    -{before}\n    +{after}"


def texts(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield what a node may be replaced by: (the part of it, its new text)."""
    match node:
        case ast.Compare(left, ops, comparators):
            for at, op in enumerate(ops):
                turned = [*ops[:at], OTHERS[type(op)], *ops[at + 1 :]]
                yield node, ast.unparse(ast.Compare(left, turned, comparators))
        case ast.BoolOp(op, values):
            yield node, f"({ast.unparse(ast.BoolOp(OTHERS[type(op)], values))})"
        case ast.BinOp(left, op, right) if type(op) in OTHERS:
            yield node, f"({ast.unparse(ast.BinOp(left, OTHERS[type(op)], right))})"
        case ast.UnaryOp(ast.Not(), operand):
            yield node, f"bool({ast.unparse(operand)})"
        case ast.Constant(bool() as value):
            yield node, str(not value)
        case ast.Constant(int() as value):
            yield node, str(value + 1)
        case ast.Call(ast.Name(name) as called) if name in CALLS:
            yield called, CALLS[name]
        case ast.If(test) | ast.While(test) if not isinstance(
            test, ast.Compare | ast.UnaryOp | ast.Constant
        ):
            yield test, f"not ({ast.unparse(test)})"
        case ast.Expr(ast.Call()) | ast.AugAssign() | ast.Break() | ast.Continue():
            yield node, "pass"
        case ast.Assign([ast.Attribute(), *_]):
            yield node, "pass"
        case ast.Return(ast.AST() as value) if not isinstance(value, ast.Constant):
            yield node, "return None"


def mutations(path: str, node: ast.AST) -> Iterator[Mutation]:
    """Yield every change of one line that can be made in a file."""
    for child in ast.iter_child_nodes(node):
        names = {getattr(child, "name", None)}
        if isinstance(child, ast.Expr | ast.Assign):
            target = child.targets[0] if isinstance(child, ast.Assign) else child.value
            names |= {name.id for name in ast.walk(target) if isinstance(name, ast.Name)}
        notes = (getattr(node, "annotation", None), getattr(node, "returns", None))
        if child in (*notes, *getattr(node, "decorator_list", ())):
            continue
        if isinstance(child, LEFT_ALONE) or names & NAMES_LEFT_ALONE:
            continue
        for part, text in texts(child):
            if part.lineno == part.end_lineno:
                span = part.col_offset, part.end_col_offset
                yield Mutation(path, part.lineno, *span, text)
        yield from mutations(path, child)


def near(path: str, also: Sequence[str]) -> list[str]:
    """Return where the tests of a source file are, the nearest first."""
    place = ROOT / "tests/unit" / Path(path).parent
    while not place.is_dir():
        place = place.parent
    module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    importing = f"from {module} import"
    found = [*place.glob(f"test_{Path(path).stem}.py")]
    found += sorted(f for f in (ROOT / "tests").rglob("test_*.py") if importing in f.read_text())
    found += sorted(place.glob("test_*.py"))
    return [*dict.fromkeys(str(file.relative_to(ROOT)) for file in found), *also]


class Copies:
    """Copies of the tree, one for each job."""

    def __init__(self, where: Path, jobs: int, timeout_s: float) -> None:
        self._free: SimpleQueue[Path] = SimpleQueue()
        self._timeout_s = timeout_s
        for number in range(jobs):
            copy = where / str(number)
            shutil.copytree(ROOT, copy, ignore=NOT_COPIED, symlinks=True)
            self._free.put(copy)

    def judge(self, mutation: Mutation, tests: Sequence[str]) -> tuple[str, str]:
        """Make the change, run the tests, take it back; return the outcome and what failed."""
        copy = self._free.get()
        file = copy / mutation.path
        before = file.read_text()
        try:
            file.write_text(mutation.changed(before)[2])
            return self._run(copy, tests)
        finally:
            file.write_text(before)
            self._free.put(copy)

    def _run(self, copy: Path, tests: Sequence[str]) -> tuple[str, str]:
        run = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-xq", "--tb=no", "-p", "no:cacheprovider", *tests],
            cwd=copy,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            out, _ = run.communicate(timeout=self._timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()
            return "timeout", ""
        failed = [line for line in out.splitlines() if line.startswith(("FAILED", "ERROR"))]
        outcomes = {0: "survived", 5: "no test"}
        return outcomes.get(run.returncode, "killed"), failed[0].split(" - ")[0] if failed else ""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="+", help="files or folders whose lines are changed")
    parser.add_argument("--count", type=int, default=50, help="how many changes; 0: all")
    parser.add_argument("--seed", type=int, default=1, help="which ones are drawn")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at a time")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for the tests of one")
    parser.add_argument("--also", nargs="+", default=[], help="further tests, for what survives")
    parser.add_argument("--out", type=Path, help="write the table there as well")
    parser.add_argument("--list", action="store_true", help="only say what would be changed")
    args = parser.parse_args()
    given = [(ROOT / path).resolve() for path in args.paths]
    if missing := [str(path) for path in given if not path.exists()]:
        parser.error(f"there is no {', '.join(missing)}")
    files = [path for path in given if path.is_file()]
    files += [file for path in given for file in sorted(path.rglob("*.py"))]
    everything = [
        mutation
        for file in files
        for mutation in mutations(str(file.relative_to(ROOT)), ast.parse(file.read_text()))
    ]
    drawn = Random(args.seed).sample(everything, min(args.count or 10**9, len(everything)))
    print(f"{len(drawn)} of {len(everything)} changes in {len(files)} files, seed {args.seed}")
    if args.list:
        print(*drawn, sep="\n")
        return 0
    survivors, counts = [], Counter[str]()
    with tempfile.TemporaryDirectory(prefix="mutate-") as where:
        copies = Copies(Path(where), args.jobs, args.timeout)
        with ThreadPoolExecutor(args.jobs) as pool:
            tests = [near(mutation.path, args.also) for mutation in drawn]
            verdicts = pool.map(copies.judge, drawn, tests)
            for mutation, (outcome, by) in zip(drawn, verdicts, strict=True):
                counts[outcome] += 1
                print(f"{outcome:8} {mutation.path}:{mutation.line} {by}", flush=True)
                if outcome in ("survived", "no test"):
                    survivors.append(f"{outcome}: {mutation}")
    report = "\n".join([*sorted(survivors), ", ".join(f"{k} {n}" for k, n in counts.items())])
    print(f"\n{report}")
    if args.out is not None:
        args.out.write_text(report + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
