"""Do the tests bite? Change one line, run the tests that reach it, and see whether one fails.

  scripts/mutate storage broker/coordinator              50 changes, drawn from seed 1
  scripts/mutate storage --count 200 --seed 7            others, and more of them
  scripts/mutate storage/recovery.py --count 0           every change that can be made there
  scripts/mutate storage --list --count 20               lists the changes; runs nothing

How it goes
  1. The tests run once on the unchanged sources, traced: that tells which tests reach which line.
     It takes several times as long as the tests do. The result is kept in `build/mutate/` and used
     again until the sources to be changed, or the tests, change.
  2. Changes are drawn: a comparison turned or shifted by one, `and` for `or`, + for -, a number one
     greater, a condition negated, a call or an assignment left out, None returned, and so on.
     Messages, logging, assertions and annotations are left alone.
  3. Each change is made in a copy of the tree, where the tests that reach its line run (for a line
     that runs at import, those that reach the file, or any): at most `--most`, half of them those
     that reach the fewest lines, the others drawn. The first failure, or a run that takes too long,
     kills the change. With few tests, changes survive that a test left out would have noticed.
  4. A table shows each survivor with its diff. `no test`: no test reaches that line.

What to do with a survivor: either the rule that the line holds has no test (write one, and see it
fail with the change), or the change makes no difference (go on), or the line is not needed (remove
it). The exit code is 0 whatever survives: the table is for reading.
"""

import argparse
import ast
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from queue import SimpleQueue
from random import Random
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "mutate"
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", "build", "__pycache__", ".*_cache", "*.egg-info"
)
EVERYWHERE = ("tests/property", "tests/whole")
"""Tests of several rooms together, which may reach any line."""

_IMPORT = 0
"""Stands for all lines of a file that run at import."""

# ---- what may be changed

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "abs": ""}
LOGGERS = {"_log", "log", "logger"}
LEFT_ALONE = {"__repr__", "_check", "__str__", "_check_order"}


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change of one line."""

    path: str
    line: int
    first: int
    """Where the bytes of the line that are replaced begin."""
    last: int
    """Where they end."""
    text: str
    at_import: bool
    """Whether the line runs when its module is imported, and not in a test."""

    def apply(self, source: str) -> str:
        """The changed source."""
        lines = source.splitlines(keepends=True)
        line = lines[self.line - 1].encode()
        lines[self.line - 1] = (
            line[: self.first] + self.text.encode() + line[self.last :]
        ).decode()
        return "".join(lines)

    def diff(self, source: str) -> str:
        """The line before and after."""
        pair = unified_diff(source.splitlines(), self.apply(source).splitlines(), n=0, lineterm="")
        return "\n".join(
            line for line in pair if line[:3] not in ("---", "+++") and line[:2] != "@@"
        )


class Mutations(ast.NodeVisitor):
    """All changes that can be made in one file."""

    def __init__(self, path: str, source: str) -> None:
        self.path = path
        self.found: list[Mutation] = []
        self._depth = 0
        self.visit(ast.parse(source))

    def _add(self, node: Any, text: str) -> None:
        if node.lineno == node.end_lineno:
            span = node.col_offset, node.end_col_offset
            self.found.append(Mutation(self.path, node.lineno, *span, text, not self._depth))

    # Left alone.

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if node.name not in LEFT_ALONE:
            for default in (*node.args.defaults, *node.args.kw_defaults):
                if default is not None:
                    self.visit(default)
            self._depth += 1
            for statement in node.body:
                self.visit(statement)
            self._depth -= 1

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:  # leaves its decorators alone
            self.visit(statement)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass

    def visit_Raise(self, node: ast.Raise) -> None:
        pass

    # Changed.

    def visit_Compare(self, node: ast.Compare) -> None:
        for at, op in enumerate(node.ops):
            other = COMPARISONS.get(type(op))
            if other is not None:
                ops = [*node.ops[:at], other(), *node.ops[at + 1 :]]
                self._add(node, ast.unparse(ast.Compare(node.left, ops, node.comparators)))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._add(node, f"({ast.unparse(ast.BoolOp(other, node.values))})")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._add(node, f"bool({ast.unparse(node.operand)})")
        if not isinstance(node.operand, ast.Constant):
            self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        other = OPERATORS.get(type(node.op))
        if other is not None:
            self._add(node, f"({ast.unparse(ast.BinOp(node.left, other(), node.right))})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add(node, str(not node.value))
        elif isinstance(node.value, int):
            self._add(node, str(node.value + 1))

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in CALLS:
            self._add(node.func, CALLS[node.func.id])
        self.generic_visit(node)

    def visit_If(self, node: ast.If | ast.While) -> None:
        if not isinstance(node.test, ast.Compare | ast.UnaryOp | ast.Constant):
            self._add(node.test, f"not ({ast.unparse(node.test)})")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        call = node.value
        if not isinstance(call, ast.Call):
            if not isinstance(call, ast.Constant):
                self.generic_visit(node)
            return
        target = call.func
        while isinstance(target, ast.Attribute):
            target = target.value
        if not (isinstance(target, ast.Name) and target.id in LOGGERS):
            self._add(node, "pass")
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if "__slots__" in names:
            return
        if any(isinstance(target, ast.Attribute) for target in node.targets):
            self._add(node, "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._add(node, "pass")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            if not isinstance(node.value, ast.Constant):
                self._add(node, "return None")
            self.generic_visit(node)

    def visit_Break(self, node: ast.Break) -> None:
        self._add(node, "pass")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._add(node, "pass")


def sources(paths: Sequence[str]) -> Iterator[str]:
    """Files below these, from the root of the tree."""
    for path in paths:
        full = (ROOT / path).resolve()
        files = [full] if full.is_file() else sorted(full.rglob("*.py"))
        for file in files:
            yield str(file.relative_to(ROOT))


# ---- which tests reach which line (a pytest plugin: this file, in the run that is traced)


class Reach:
    """Notes which lines of the files in MUTATE_FILES each test runs."""

    def __init__(self, files: Sequence[str], result: str) -> None:
        self._files = {str(Path.cwd() / file): file for file in files}
        self._result = result
        self._lines: set[tuple[str, int]] = set()
        self._reached: dict[str, list[tuple[str, int]]] = {}

    def _call(self, frame: FrameType, event: str, _: object) -> Any:
        name = self._files.get(frame.f_code.co_filename)
        if name is None:
            return None
        lines = self._lines

        def line(frame: FrameType, event: str, _: object) -> Any:
            lines.add((name, frame.f_lineno))
            return line

        lines.add((name, frame.f_lineno))
        return line

    def pytest_runtest_setup(self, item: Any) -> None:
        self._lines.clear()
        threading.settrace(self._call)
        sys.settrace(self._call)

    def pytest_runtest_teardown(self, item: Any) -> None:
        sys.settrace(None)
        threading.settrace(None)
        if self._lines:
            self._reached[item.nodeid] = sorted(self._lines)

    def pytest_sessionfinish(self) -> None:
        Path(self._result).write_text(json.dumps(self._reached))


if os.environ.get("MUTATE_FILES"):
    _reach = Reach(os.environ["MUTATE_FILES"].split(":"), os.environ["MUTATE_RESULT"])
    pytest_runtest_setup = _reach.pytest_runtest_setup
    pytest_runtest_teardown = _reach.pytest_runtest_teardown
    pytest_sessionfinish = _reach.pytest_sessionfinish


def mirrored(file: str) -> str:
    """The directory with a file's tests: the tree of tests/unit mirrors that of the sources."""
    place = Path(file).parent
    while place != Path(".") and not (ROOT / "tests/unit" / place).is_dir():
        place = place.parent
    return str(Path("tests/unit") / place)


def reach(files: Sequence[str], tests: Sequence[str], tell: Any) -> dict[str, list[list[Any]]]:
    """Return test to the lines that it reaches, from this run of the tests or an earlier one."""
    digest = hashlib.sha256("\n".join((*files, *tests)).encode())
    for path in (*files, *(str(p) for t in tests for p in sorted((ROOT / t).rglob("*.py")))):
        digest.update((ROOT / path).read_bytes())
    kept = WORK / f"reach-{digest.hexdigest()[:16]}.json"
    if not kept.exists():
        WORK.mkdir(parents=True, exist_ok=True)
        tell(f"tracing {' '.join(tests)}")
        result = kept.with_suffix(".tmp")
        environment = {
            **os.environ,
            "MUTATE_FILES": ":".join(files),
            "MUTATE_RESULT": str(result),
            "PYTHONPATH": str(ROOT / "scripts"),
        }
        options = ["-q", "-p", "mutate", "-o", "faulthandler_timeout=0", "-p", "no:cacheprovider"]
        subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=ROOT,
            env=environment,
            check=False,
            stdout=subprocess.DEVNULL,
        )
        result.rename(kept)
    found: dict[str, list[list[Any]]] = json.loads(kept.read_text())
    return found


# ---- trying them


@dataclass(slots=True)
class Verdict:
    """What became of a change."""

    mutation: Mutation
    outcome: str
    """killed, timeout, survived, no test"""
    by: str = ""
    tests: int = 0
    seconds: float = 0.0


class Trial:
    """Copies of the tree, one for each job, and the tests that are run in them."""

    def __init__(self, where: Path, jobs: int, timeout_s: float) -> None:
        self._free: SimpleQueue[Path] = SimpleQueue()
        self._timeout_s = timeout_s
        for number in range(jobs):
            copy = where / str(number)
            shutil.copytree(ROOT, copy, ignore=NOT_COPIED, symlinks=True)
            self._free.put(copy)

    def judge(self, mutation: Mutation, tests: Sequence[str]) -> Verdict:
        """Make the change, run the tests, take it back."""
        if not tests:
            return Verdict(mutation, "no test")
        copy = self._free.get()
        file = copy / mutation.path
        before = file.read_text()
        begin = time.perf_counter()
        try:
            file.write_text(mutation.apply(before))
            outcome, by = self._run(copy, tests)
        finally:
            file.write_text(before)
            self._free.put(copy)
        return Verdict(mutation, outcome, by, len(tests), time.perf_counter() - begin)

    def _run(self, copy: Path, tests: Sequence[str]) -> tuple[str, str]:
        options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:randomly"]
        run = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *tests],
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
        if run.returncode == 0:
            return "survived", ""
        failed = [line for line in out.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return "killed", failed[0].split(" - ")[0] if failed else f"exit {run.returncode}"


def chosen(tests: Sequence[str], most: int, seed: int) -> list[str]:
    """Choose `most` of `tests`, which are sorted by the number of lines that they reach.

    Half of them are those that reach the fewest lines; the others are drawn.
    """
    close, rest = list(tests[: most - most // 2]), tests[most - most // 2 :]
    return close + Random(seed).sample(rest, min(most // 2, len(rest)))


def table(verdicts: Sequence[Verdict]) -> str:
    """The survivors with their diffs, and the counts, as text."""
    lines = []
    for verdict in sorted(verdicts, key=lambda v: (v.mutation.path, v.mutation.line)):
        if verdict.outcome in ("survived", "no test"):
            mutation = verdict.mutation
            tests = f"{verdict.tests} tests" if verdict.tests else "no test"
            lines.append(f"{mutation.path}:{mutation.line}  {verdict.outcome}, {tests}")
            diff = mutation.diff((ROOT / mutation.path).read_text())
            lines += [f"    {line}" for line in diff.splitlines()]
    counts = {
        outcome: sum(v.outcome == outcome for v in verdicts)
        for outcome in ("killed", "timeout", "survived", "no test")
    }
    lines.append(", ".join(f"{outcome} {count}" for outcome, count in counts.items()))
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="+", help="files or folders whose lines are changed")
    parser.add_argument("--count", type=int, default=50, help="how many changes; 0: all")
    parser.add_argument("--seed", type=int, default=1, help="which ones are drawn")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at a time")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for the tests of one")
    parser.add_argument(
        "--tests",
        nargs="+",
        help="where to look for tests; by default what mirrors the paths under tests/unit, and "
        + ", ".join(EVERYWHERE),
    )
    parser.add_argument("--most", type=int, default=40, help="tests that are run for one change")
    parser.add_argument("--out", type=Path, help="write the table there as well")
    parser.add_argument("--list", action="store_true", help="only say what would be changed")
    arguments = parser.parse_args(argv)
    files = list(sources(arguments.paths))
    everything = [m for file in files for m in Mutations(file, (ROOT / file).read_text()).found]
    count = min(arguments.count or len(everything), len(everything))
    drawn = Random(arguments.seed).sample(everything, count)
    print(f"{count} of {len(everything)} changes in {len(files)} files", flush=True)
    if arguments.list:
        for mutation in drawn:
            diff = mutation.diff((ROOT / mutation.path).read_text())
            print(f"{mutation.path}:{mutation.line}\n{diff}")
        return 0
    tests = arguments.tests or sorted({mirrored(file) for file in files} | set(EVERYWHERE))
    tests = [t for t in tests if not any(t != o and Path(o) in Path(t).parents for o in tests)]
    reached = reach(files, tests, lambda text: print(text, flush=True))
    by_line: dict[tuple[str, int], list[str]] = {}
    for test in sorted(reached, key=lambda test: len(reached[test])):
        for file, line in reached[test]:
            by_line.setdefault((file, line), []).append(test)
        for file in {file for file, _ in reached[test]}:
            by_line.setdefault((file, _IMPORT), []).append(test)
    verdicts: list[Verdict] = []
    with tempfile.TemporaryDirectory(prefix="mutate-") as where:
        trial = Trial(Path(where), arguments.jobs, arguments.timeout)
        with ThreadPoolExecutor(arguments.jobs) as pool:

            def judged(mutation: Mutation) -> Verdict:
                line = _IMPORT if mutation.at_import else mutation.line
                tests = by_line.get((mutation.path, line), [])
                if mutation.at_import and not tests:
                    tests = sorted(reached)
                return trial.judge(mutation, chosen(tests, arguments.most, arguments.seed))

            results = pool.map(judged, drawn)
            for number, verdict in enumerate(results, start=1):
                verdicts.append(verdict)
                mutation = verdict.mutation
                print(
                    f"{number:4}/{count} {verdict.outcome:8} {verdict.seconds:6.1f} s "
                    f"{mutation.path}:{mutation.line} {verdict.by}",
                    flush=True,
                )
    report = table(verdicts)
    print(f"\n{report}")
    if arguments.out is not None:
        arguments.out.write_text(report + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
