"""Names in backticks in pages for developers, and in docstrings of the product, exist.

A name is a path (`storage/waits.py`), a dotted name (`storage.waits`, `Log.read`), an identifier
(`Signal`) or a call of one (`judge()`). The test ignores all else: options, values, sentences.

  * A path lies in the checkout, whole or as the end of one (`log/reading.py`).
  * A dotted name that begins with a module or a class is followed through the syntax trees, base
    classes included. In another one (`ctx.large`) a module or a class has the attribute.
  * An identifier is what a module or a class defines, or a string (a setting, a metric). A
    docstring may also name whatever the code of its own module names.

From the word Kafka (ZooKeeper, Java ...) to the end of its sentence names are Kafka's, and so are
those in javaCase; `OTHERS` has the rest of what others define.
"""

import ast
import builtins
import keyword
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
ROOMS: Final = (
    *("broker", "config", "examples", "pipeline", "protocol", "publishing", "pykafkalog"),
    *("storage", "tls", "tools"),
)
AROUND: Final = ("tests", "scripts", "docs", "containers", "dashboards")
PAGES: Final = (
    ROOT / "CONTRIBUTING.md",
    ROOT / "docs/ARCHITECTURE.md",
    ROOT / "docs/decisions/README.md",
    *sorted((ROOT / "docs/developing").glob("*.md")),
)
OTHERS: Final = frozenset(
    {
        # classes of Kafka and Hadoop
        *("AbstractLegacyRecordBatch", "AclApis", "AclControlManager", "AclEntry"),
        *("AddPartitionsToTxnManager", "BrokerTopicMetrics", "CleanedTransactionMetadata"),
        *("ClientQuotaControlManager", "ConfigDef.ValidList", "ControlRecordType"),
        *("ControllerBrokerRequestBatch", "DelayedDeleteRecords", "DelegationTokenControlManager"),
        *("DescribeConfigsResponse.ConfigType", "DumpLogSegments", "FetchDataInfo"),
        *("FetcherLagMetrics", "FileRecords.TimestampAndOffset", "LegacyRecord"),
        *("ListOffsetsRequest.DEBUGGING_REPLICA_ID", "LocalLog", "LogAppendInfo"),
        *("LogStartOffsetIncrementReason", "MemoryRecordsBuilder", "OffsetsOutOfOrderException"),
        *("PartitionLeaderElectionAlgorithms", "RawLocalFs", "RequestSendThread"),
        *("ScramControlManager", "ScramCredentialUtils", "ScramImage.describe", "SecurityUtils"),
        *("String.length", "UnexpectedAppendOffsetException", "ZkData.PersistentZkPaths"),
        # settings of clients, and fields of requests by the names of settings
        *("max.request.size", "max.wait.ms", "min.bytes"),
        # JMX's names of metrics
        *("FailedIsrUpdatesPerSec", "FailedPartitionsCount", "IsrExpandsPerSec"),
        *("IsrShrinksPerSec", "MaxLag", "NumDelayedOperations", "PurgatorySize"),
        *("BytesInPerSec", "ReassigningPartitions"),
        # what is put together or made while the program runs
        *("ALERT_", "DescribeConfigs", "ListOffsets", "TransactionalId", "build/compiled"),
        # libraries, the system, the environment
        *("KazooState", "PYTHON", "PYTHONPATH", "TransactionRequest", "_spark_metadata"),
        *(".venv/bin/python", "build_stream", "checkpoint/commits", "checkpoint/offsets", "cp"),
        *("df.schema.json", "invalidate_caches", "parse_stream", "python_info", "renameat2"),
        *("spark.read.format", "to_pandas", "with_traceback"),
        # names of rooms in a wheel
        *("pykafkalog.storage", "pykafkalog.storage.log"),
        # examples of values
        *("alice", "mv", "y"),
    }
)

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_TICKED = re.compile(r"(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)")
_OF_OTHERS = re.compile(
    r"(?:(?:Kafka|ZooKeeper|Java|Jepsen|librdkafka)(?:'s)?\b|Source:|After (?:the )?(?=`))"
    r"(?:[^`.:;]|`[^`]*`|[.:](?!\s))*"
)
_PATH = re.compile(r"[a-z.][\w.-]*(?:/[\w.*-]+)+/?|[\w-]+/|[\w-]+\.(?:py|pyi|md|toml|txt)")
_NAME = re.compile(r"@?([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\(.*\))?", re.DOTALL)
_JAVA = re.compile(r"(?:\w+\.)*[a-z]+[A-Z]\w*|(?:org|java|kafka)\..*")
_DOCSTRING = re.compile(r'"""(?:[^\\]|\\.)*?"""', re.DOTALL)
_COMMENT = re.compile(r"#[^\n\"']*$", re.MULTILINE)
_STRING = re.compile(r'"([\w.-]+)"')
_IMPORT = re.compile(r"^\s*(?:from|import) (\w+)", re.MULTILINE)
_DEFINITION = re.compile(r"^ *(?:class|def|async def) (\w+)|^(\w+)(?:: [^=\n]+)? =", re.MULTILINE)
_BUILT_IN = {*dir(builtins), *keyword.kwlist}


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, a class or a function, but none of what it defines."""
    for statement in body:
        yield statement
        if not isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for field in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(statement, field, []))
            for case in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
                yield from _statements(case.body)


class Names:
    """The names that the sources define, and the docstrings of the sources."""

    def __init__(self) -> None:
        self.modules: dict[str, set[str]] = {}
        """Module to the names at its top."""
        self.classes: dict[str, tuple[set[str], set[str]]] = {}
        """Class to its members and its bases; classes of one name are taken together."""
        self.words: dict[str, set[str]] = {}
        """Module to every word of its code, without comments and docstrings."""
        self.strings: set[str] = set()
        self.imported: set[str] = set(sys.stdlib_module_names)
        self.docstrings: list[tuple[str, int, str]] = []
        """(module, line, text)"""
        self.defined: set[str] = set()
        self.code: set[str] = set()
        """Every word of the product's code."""

    def read(self, module: str, source: str) -> None:
        """Take in a module of the product."""
        code = _COMMENT.sub("", _DOCSTRING.sub('""', source))
        words = self.words.setdefault(module, set())
        words.update(re.findall(r"\w+", code))
        self.code |= words
        self.strings.update(_STRING.findall(code))
        self.imported.update(set(_IMPORT.findall(code)) - set(ROOMS))
        top = self.modules.setdefault(module, set())
        self._define(ast.parse(source).body, module, top, members=set())
        self.defined |= top | set(module.split("."))

    def read_roughly(self, module: str, source: str) -> None:
        """Take in a test or a script: the names that it defines, wherever they are."""
        self.modules[module] = {a or b for a, b in _DEFINITION.findall(source)}
        self.imported.update(set(_IMPORT.findall(source)) - set(ROOMS))
        self.defined |= self.modules[module] | set(module.split("."))

    def _define(
        self, body: list[ast.stmt], module: str, names: set[str], members: set[str]
    ) -> None:
        """Add what statements define to `names`, and what they set of `self` to `members`."""
        for statement in _statements(body):
            match statement:
                case ast.ClassDef(name=name, bases=bases):
                    own, of = self.classes.setdefault(name, (set(), set()))
                    self._define(statement.body, module, own, own)
                    of |= {ast.unparse(base).partition("[")[0].split(".")[-1] for base in bases}
                    self.defined |= own
                    names.add(name)
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    self._define(statement.body, module, set(), members)
                    names.add(name)
                case ast.Expr(value=ast.Constant(value=str(text)), lineno=line):
                    self.docstrings.append((module, line, text))
                case ast.Assign(targets=targets):
                    for target in targets:
                        self._assign(target, names, members)
                case ast.AnnAssign(target=target):
                    self._assign(target, names, members)
                case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                    names |= {alias.asname or alias.name for alias in aliases}

    def _assign(self, target: ast.expr, names: set[str], members: set[str]) -> None:
        match target:
            case ast.Name(id=name):
                names.add(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                members.add(name)
            case ast.Tuple(elts=several):
                for one in several:
                    self._assign(one, names, members)

    def know(self, name: str, module: str = "") -> bool:
        """Whether a name is one; `module`: that of the docstring, empty for a page."""
        first, *rest = name.split(".")
        here = self.words.get(module, set())
        if name in self.strings or name in OTHERS or first in self.imported or _JAVA.match(name):
            return True
        if not rest:
            return name in self.defined or name in _BUILT_IN or name in here
        if first in self.classes:
            return self._has(first, rest[0])
        for count in range(len(rest), -1, -1):
            path = ".".join([first, *rest[:count]])
            homes = [m for m in self.modules if m == path or m.endswith(f".{path}")]
            found = any(self._leads(home, rest[count:]) for home in homes)
            if found or (homes and count):
                return found
        of_variable = len(rest) == 1 and first in self.code and first not in ROOMS
        return of_variable and (rest[0] in self.defined or rest[0] in here)

    def _leads(self, module: str, rest: list[str]) -> bool:
        return not rest or (
            rest[0] in self.modules[module]
            and (len(rest) == 1 or rest[0] not in self.classes or self._has(rest[0], rest[1]))
        )

    def _has(self, name: str, member: str) -> bool:
        """Whether a class or one of its bases has a member; a base of others may have any."""
        own, bases = self.classes[name]
        return member in own or any(
            self._has(base, member)
            if base in self.classes
            else base not in {"Protocol", "Generic", "Enum", "IntEnum", "StrEnum"}
            for base in bases - {name}
        )


@cache
def names() -> Names:
    """Those of this checkout."""
    found = Names()
    for room in (*ROOMS, "tests", "scripts"):
        for path in sorted((ROOT / room).rglob("*.py*")):
            if path.suffix not in {".py", ".pyi"}:
                continue
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            read = found.read if room in ROOMS else found.read_roughly
            read(module.removesuffix(".__init__"), path.read_text())
    return found


@cache
def paths() -> frozenset[str]:
    """The paths of the checkout, and every end of one."""
    files = [path for room in (*ROOMS, *AROUND) for path in (ROOT / room).rglob("*")]
    parts = [path.relative_to(ROOT).parts for path in (*files, *ROOT.iterdir())]
    return frozenset("/".join(path[at:]) for path in parts for at in range(len(path)))


def unknown(text: str, module: str = "") -> list[str]:
    """The names in backticks that nothing has."""
    found = []
    for ticked in _TICKED.findall(_OF_OTHERS.sub("", _FENCE.sub("", text))):
        first = ticked.split()[0]
        if _PATH.fullmatch(first):
            path = first.rstrip("/")
            known = bool({path, f"{path}.py"} & (paths() | OTHERS)) or any(ROOT.glob(path))
        else:
            name = _NAME.fullmatch(ticked)
            known = name is None or names().know(name[1], module)
        if not known:
            found.append(ticked)
    return found


def test_the_names_in_pages_exist() -> None:
    found = {page.name: missing for page in PAGES if (missing := unknown(page.read_text()))}
    assert found == {}


def test_the_names_in_docstrings_exist() -> None:
    found = {
        f"{module}, line {line}": missing
        for module, line, text in names().docstrings
        if (missing := unknown(text, module))
    }
    assert found == {}


def test_a_name_that_nothing_has_is_noticed() -> None:
    """Right names, and each with letters changed."""
    right = (
        "`storage/waits.py` `log/reading.py` `scripts/bench/*.py` `storage.waits` `Log.read` "
        "`runtime.coordinator` `Signal` `note_change` `judge()` `ctx.large` `min.insync.replicas`"
    )
    wrong = (
        "`storage/waist.py` `log/raeding.py` `scripts/bensh/*.py` `storage.wait` `Log.raed` "
        "`runtime.coordinates` `Singal` `note_chance` `jugde()` `ctx.lagre` `min.insync.replica`"
    )
    assert unknown(right) == []
    assert unknown(wrong) == [name.strip("`") for name in wrong.split()]
    assert unknown("As Kafka's `Singal` and `Log.raed`. Not `raeding`.") == ["raeding"]
