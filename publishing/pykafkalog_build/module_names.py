"""Finds module names in strings, which the sources must not have: rewriting cannot find them all.

A string that looks like a module's name need not be one: `"broker.id"` is a setting of Kafka's, and
`"storage"` may be a word. So a string is refused only if it probably means a module:

1. a dotted name of a module that exists, or of a name in one (`"storage.log.log.Log"`);
2. a string that begins like one and continues with a value (`f"tools.{name}"`, `"tools." + name`);
3. a room as an argument of a function that takes modules (`getLogger("broker")`,
   `files("config")`), or after `"-m"`;
4. source that imports from a room (`exec`).

Docstrings are ignored. Use `__package__` and `__name__` instead of such strings. For a string that
is not a module's name, put `# no module name` at the end of its line.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from pykafkalog_build.problems import Problem
from pykafkalog_build.rooms import Rooms

MARK: Final = b"# no module name"
TAKE_MODULES: Final = frozenset(
    {
        *("__import__", "import_module", "find_spec", "resolve_name"),
        *("run_module", "getLogger", "getChild", "files", "get_data"),
    }
)
"""Functions and methods whose first argument names a module or a package."""

_DOTTED: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_BEGINNING: Final = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\.(?=$|%|\{)")


def module_names(tree: ast.Module, source: bytes, rooms: Rooms) -> Iterator[Problem]:
    """Yield a problem for every such string in a file."""
    lines = source.splitlines()
    finder = _Finder(rooms)
    finder.visit(tree)
    for line, end, text in sorted(finder.found):
        if not lines[end - 1].rstrip().endswith(MARK):
            yield Problem(
                line,
                f"{text!r} names a module in a string; say it with __package__ or __name__"
                f" (or `{MARK.decode()}` at the end of the line)",
            )


class _Finder(ast.NodeVisitor):
    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        names = "|".join(sorted(rooms.names))
        self._imports = re.compile(
            rf"^\s*(?:from\s+(?:{names})(?:\.\w+)*\s+import\b"
            rf"|import\s+(?:{names})(?:\.\w+)*\s*(?:as\s+\w+\s*)?(?:$|[;,#]))",
            re.MULTILINE,
        )
        self.found: set[tuple[int, int, str]] = set()
        """(first line, last line, string) of each find."""

    def visit_Expr(self, node: ast.Expr) -> None:
        """Skip strings that are statements: docstrings."""
        if not _is_text(node.value):
            self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Visit an f-string without its later texts: only the first can begin a name."""
        for place, part in enumerate(node.values):
            if place == 0 or not isinstance(part, ast.Constant):
                self.visit(part)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Check a plain string (1, 2, 4)."""
        if isinstance(node.value, str) and self._names_module(node.value):
            self._add(node, node.value)

    def visit_Call(self, node: ast.Call) -> None:
        """Check the arguments of functions that take modules, and those after `-m` (3)."""
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in TAKE_MODULES and node.args:
            self._must_not_be_a_room(node.args[0])
        self._words(node.args)
        self.generic_visit(node)

    def visit_List(self, node: ast.List) -> None:
        """Check a list that may be a command with `-m` (3)."""
        self._words(node.elts)
        self.generic_visit(node)

    def visit_Tuple(self, node: ast.Tuple) -> None:
        """Check a tuple that may be a command with `-m` (3)."""
        self._words(node.elts)
        self.generic_visit(node)

    def _words(self, words: Sequence[ast.expr]) -> None:
        for word, following in pairwise(words):
            if isinstance(word, ast.Constant) and word.value == "-m":
                self._must_not_be_a_room(following)

    def _must_not_be_a_room(self, node: ast.expr) -> None:
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and _DOTTED.fullmatch(text) and self._rooms.holds(text):
            self._add(node, text)

    def _names_module(self, text: str) -> bool:
        beginning = _BEGINNING.match(text)
        if beginning is not None:
            return beginning[1] in self._rooms.modules
        if "." in text and _DOTTED.fullmatch(text):
            above = text.rpartition(".")[0]
            return text in self._rooms.modules or ("." in above and above in self._rooms.modules)
        return self._imports.search(text) is not None

    def _add(self, node: ast.expr, text: str) -> None:
        self.found.add((node.lineno, node.end_lineno or node.lineno, text))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
