"""The seams hold: engine code meets the world only through what it is handed.

Time, disk, network, threads and chance are behind protocols (`broker.world`, `storage.clock`,
`storage.filesystem`); only the modules that are those things use the real ones. So a whole broker
can live in one process, under virtual time. `ALLOWED` says who may use what; an entry that nobody
needs any more fails.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENGINE = ("config", "protocol", "storage", "tls", "broker")

TIME = {"time", "datetime", "sched"}
DISK = {"os", "shutil", "tempfile", "fcntl", "mmap", "glob", "open"}
NETWORK = {"socket", "select", "selectors", "ssl", "asyncio"}
LIMITS = {"resource"}
THREADS = {"threading", "_thread", "concurrent", "multiprocessing", "subprocess", "signal", "queue"}
CHANCE = {"random", "secrets", "uuid"}
TRIO = {
    "trio.CancelScope(deadline)",
    "trio.current_time",
    "trio.fail_after",
    "trio.fail_at",
    "trio.from_thread",
    "trio.lowlevel.notify_closing",
    "trio.lowlevel.wait_readable",
    "trio.lowlevel.wait_writable",
    "trio.move_on_after",
    "trio.move_on_at",
    "trio.open_process",
    "trio.open_signal_receiver",
    "trio.open_tcp_listeners",
    "trio.open_tcp_stream",
    "trio.run_process",
    "trio.serve_listeners",
    "trio.serve_tcp",
    "trio.sleep",
    "trio.sleep_until",
    "trio.socket",
    "trio.to_thread",
}
"""Time, network and threads by another name. `trio.sleep_forever` waits for no time."""
TYPES = {"mmap.mmap", "random.Random", "ssl.SSLContext", "uuid.UUID"}
"""May be named: they come from elsewhere. `mmap.mmap()` and `random.Random()` may not be called."""
FORBIDDEN = TIME | DISK | NETWORK | LIMITS | THREADS | CHANCE | TRIO

ALLOWED = {
    # which files are imported, before there is a broker
    "config/form.py": {"os"},
    # the disk itself
    "storage/os_filesystem.py": {"os", "open", "fcntl", "mmap", "shutil"},
    # names of errors; anonymous memory
    "storage/memory_filesystem.py": {"os", "mmap"},
    # TLS without sockets; a file in memory; dates, which the caller's time is made to
    "tls/contexts.py": {"ssl"},
    "tls/secret_file.py": {"os", "tempfile"},
    "tls/authority.py": {"datetime"},
    # anonymous memory
    "broker/network/buffers.py": {"mmap"},
    # a program of its own: it reads a copy of what a broker has open
    "broker/offline/stored_configs.py": {"shutil", "tempfile"},
    # time itself
    "broker/world/clock.py": {"time", "trio.move_on_after", "trio.sleep"},
    # threads themselves
    "broker/world/machine.py": {"trio.to_thread"},
    # child processes themselves, as seen from the loop; what runs in one
    "broker/world/child.py": {"os", "socket", "subprocess", "trio.socket"},
    "broker/world/child_program.py": {
        "open",
        "os",
        "queue",
        "resource",
        "signal",
        "socket",
        "threading",
    },
    # what the process may have, itself
    "broker/world/process_limits.py": {"resource"},
    # the network itself; `os.sendfile`
    "broker/world/readiness.py": {"select", "socket", "trio.lowlevel.wait_readable"},
    "broker/world/tls_stream.py": {"ssl"},
    # connections of a library's own, in its thread; tests of it have a real ZooKeeper
    "broker/zookeeper/kazoo_parts.py": {"select", "socket", "ssl"},
    # the name of this machine
    "broker/world/host_name.py": {"socket"},
    "broker/world/sockets.py": {
        "os",
        "socket",
        "trio.lowlevel.notify_closing",
        "trio.lowlevel.wait_readable",
        "trio.lowlevel.wait_writable",
        "trio.socket",
    },
    # the web itself, and files that are not the broker's
    "broker/world/web.py": {"open"},
    # chance itself; how much memory there is
    "broker/world/on_machine.py": {"os", "random"},
    # the process of a tool: chance itself
    "broker/offline/adopt.py": {"random"},
    "broker/offline/users.py": {"random"},
    # the process: its environment, its signals and their time, its immediate end
    "broker/__main__.py": {"os", "signal", "trio.open_signal_receiver"},
}
"""File to what it may use, with the reason."""


def engine_files() -> list[Path]:
    return sorted(path for room in ENGINE for path in (ROOT / room).rglob("*.py"))


def forbidden_uses(source: str) -> set[str]:
    """The names of `FORBIDDEN` that a module's source imports or calls, under any name."""
    return set(_forbidden_uses(ast.parse(source)))


def _forbidden_uses(tree: ast.Module) -> Iterator[str]:
    names = dict(_imported_names(tree))
    for meaning in names.values():
        yield from _forbidden(meaning)
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name not in names:
                yield from _forbidden(name)
            case ast.Attribute():
                yield from _forbidden(_dotted(node, names))
        match node:
            case ast.Call(func=function, keywords=keywords):
                called = _dotted(function, names)
                if called in ("mmap.mmap", "random.Random"):
                    yield called.partition(".")[0]
                if _dotted(function, names) == "trio.CancelScope" and any(
                    keyword.arg in ("deadline", "relative_deadline") for keyword in keywords
                ):
                    yield "trio.CancelScope(deadline)"


def _imported_names(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(name in the module, what it is) for every import, wherever it stands."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    first = alias.name.split(".")[0]
                    yield (alias.asname, alias.name) if alias.asname else (first, first)
                    yield alias.name, alias.name
            case ast.ImportFrom(module=str(module), level=0, names=aliases):
                for alias in aliases:
                    yield alias.asname or alias.name, f"{module}.{alias.name}"


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    """`trio.lowlevel.x` for such an expression, with imported names resolved; else nothing."""
    match node:
        case ast.Name(id=name):
            return names.get(name, "")
        case ast.Attribute(value=value, attr=attribute):
            before = _dotted(value, names)
            return f"{before}.{attribute}" if before else ""
    return ""


def _forbidden(dotted: str) -> Iterator[str]:
    """The names of `FORBIDDEN` that a dotted name is, or lies within."""
    if dotted in TYPES:
        return
    parts = dotted.split(".")
    for count in range(1, len(parts) + 1):
        name = ".".join(parts[:count])
        if name in FORBIDDEN:
            yield name


def test_engine_code_meets_the_world_only_through_what_it_is_handed() -> None:
    files = engine_files()
    assert len(files) > 20
    wrong = {}
    for path in files:
        name = str(path.relative_to(ROOT))
        found = forbidden_uses(path.read_text()) - ALLOWED.get(name, set())
        if found:
            wrong[name] = found
    assert wrong == {}


def test_nobody_is_excused_who_needs_no_excuse() -> None:
    needless = {}
    for name, excused in ALLOWED.items():
        path = ROOT / name
        found = forbidden_uses(path.read_text()) if path.exists() else set()
        if excused - found or not excused:
            needless[name] = excused - found
    assert needless == {}, "take these out of the table"


def test_the_check_finds_what_it_looks_for() -> None:
    assert forbidden_uses("import os.path\nfrom time import sleep\nopen('x')") == {
        "os",
        "time",
        "open",
    }
    for source, found in {
        "import trio\ntrio.sleep(1)": "trio.sleep",
        "import trio as t\nt.move_on_after(1)": "trio.move_on_after",
        "from trio import sleep_until": "trio.sleep_until",
        "from trio.lowlevel import wait_readable as w": "trio.lowlevel.wait_readable",
        "from trio import lowlevel\nlowlevel.wait_writable(s)": "trio.lowlevel.wait_writable",
        "import trio\nrun = trio.to_thread.run_sync": "trio.to_thread",
        "import trio.to_thread": "trio.to_thread",
        "from trio.socket import socket": "trio.socket",
        "import trio\ntrio.CancelScope(deadline=3)": "trio.CancelScope(deadline)",
        "def f():\n    import socket": "socket",
        "from concurrent.futures import ThreadPoolExecutor": "concurrent",
        "from random import Random\nrandom = Random(1)": "random",
        "import random\nrandom.choice(x)": "random",
        "from uuid import UUID, uuid4": "uuid",
    }.items():
        assert forbidden_uses(source) == {found}, source
    for source in (
        "fs.open('x')\nimport struct",
        "import trio\nawait trio.sleep_forever()\ntrio.lowlevel.checkpoint()",
        "import trio\nwith trio.CancelScope(shield=True): pass",
        "from random import Random\ndef f(random: Random): random.choice(x)",
        "from uuid import UUID\nUUID(bytes=x)",
        "self.clock.sleep(1)\nclock.timeout(2)\nrandom.choice(x)",
        "from broker.world.streams import open\nopen(x)",
    ):
        assert forbidden_uses(source) == set(), source
