"""Runs `pykafkalog …` many times in one process, which is quicker for tests of many commands.

The process is of the installation under test (`installation`), as that of
`tests.support.command_line` is. Signals, pipes that are closed early and exit codes of the
interpreter, which need a process per command, are tested with that module.
"""

import base64
import json
import subprocess
import threading
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from tests.support.installation import under_test

TIMEOUT_S: Final = 60

_SERVE: Final = """
import base64, contextlib, importlib, io, json, sys
main = importlib.import_module(sys.argv[1]).main
answers, requests = sys.stdout, sys.stdin
for line in requests:
    words, given = json.loads(line)
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.StringIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(base64.b64decode(given)), encoding="utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    out.flush()
    said = base64.b64encode(out.buffer.getvalue()).decode()
    print(json.dumps([code, said, err.getvalue()]), file=answers, flush=True)
"""


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a command."""

    returncode: int
    output: bytes
    stderr: str

    @property
    def stdout(self) -> str:
        """The output as text."""
        return self.output.decode()


def in_process(*words: str, stdin: bytes = b"") -> Done:
    """Run one command to its end. Raises AssertionError if the process ends before."""
    process = _process()
    assert process.stdin is not None
    assert process.stdout is not None
    request = [words, base64.b64encode(stdin).decode()]
    timer = threading.Timer(TIMEOUT_S, process.kill)
    timer.start()
    try:
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
    finally:
        timer.cancel()
    if not answer:
        _process.cache_clear()
        raise AssertionError(f"pykafkalog {' '.join(words)} did not come to its end")
    code, output, said = json.loads(answer)
    return Done(code, base64.b64decode(output), said)


@dataclass(frozen=True, slots=True)
class BrokerTool:
    """One command of `pykafkalog` on one broker."""

    command: str
    bootstrap: str

    def run(self, *words: str, stdin: bytes = b"") -> Done:
        """Run it to its end, whatever its exit code is."""
        return in_process(self.command, *words, "-b", self.bootstrap, stdin=stdin)

    def __call__(self, *words: str, stdin: bytes = b"") -> str:
        """Return its output. Raises AssertionError if its exit code is not 0."""
        done = self.run(*words, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def parsed(self, *words: str) -> Any:
        """Return the document that it prints with `--json`."""
        return json.loads(self(*words, "--json"))

    def objects(self, *words: str) -> list[Any]:
        """Return the documents that it prints with `--json`, one a line."""
        return [json.loads(line) for line in self(*words, "--json").splitlines()]

    def refusal(self, *words: str, stdin: bytes = b"") -> str:
        """Return the line with which it fails, without any output."""
        done = self.run(*words, stdin=stdin)
        assert (done.returncode, done.stdout) == (1, "")
        (line,) = done.stderr.splitlines()
        return line


@cache
def _process() -> subprocess.Popen[str]:
    """Start the process, which ends with the tests, when its standard input is closed."""
    used = under_test()
    return subprocess.Popen(
        [used.python, "-c", _SERVE, f"{used.package}tools.__main__"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=used.directory,
        env=used.process_environment(),
    )
