"""Turns a failure of Spark into one sentence.

An exception of a task passes a scheduler, a streaming query and Py4J, each of which wraps it and
adds a stack trace. The user needs the innermost reason, in Kafka's words, and the name of the log
file that has the rest.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pipeline.errors import PipelineError

_RAISED: Final = re.compile(r"\[USER_RAISED_EXCEPTION\]\s*(.*?)\s*(?:SQLSTATE: \w+)?$", re.S)
_STATE: Final = re.compile(r"\s*SQLSTATE: \w+\s*$")
_TRACEBACK: Final = "Traceback (most recent call last)"
_OWN: Final = re.compile(r"^[\w.]*PipelineError: ", re.M)
_LOST: Final = ("KAFKA_DATA_LOSS", "OffsetOutOfRangeException", "data may have been lost")
_UNKNOWN: Final = "UnknownTopicOrPartitionException"
_UNREACHABLE: Final = re.compile(
    r"org\.apache\.kafka\.common\.errors\.(TimeoutException|DisconnectException)"
    r"|KAFKA_.*TIMEOUT|Failed to construct kafka consumer|No resolvable bootstrap urls"
)
_NOISE: Final = ("StreamingQueryException", "ExecutionException", "SparkException: Job aborted")


def as_sentence(error: BaseException, log: Path | None = None) -> PipelineError:
    """Return a PipelineError with the innermost reason; a PipelineError is returned unchanged."""
    if isinstance(error, PipelineError):
        return error
    reasons = list(reasons_of(error))
    sentence = _known(reasons) or _innermost(reasons) or type(error).__name__
    told = PipelineError(sentence if log is None else f"{sentence} (log: {log})")
    told.__cause__ = error
    return told


def _known(reasons: list[str]) -> str | None:
    for reason in reasons:
        raised = _RAISED.search(reason)
        if raised:
            return raised.group(1)
    everything = "\n".join(reasons)
    for mark in _LOST:
        if mark in everything:
            lost = next((r for r in reversed(reasons) if mark in r), reasons[-1])
            return (
                "records that were to be read are gone from Kafka, by retention or because the"
                f" topic was made anew: {_first_line(lost)}"
            )
    if _UNKNOWN in everything:
        return "a topic or partition does not exist (any more)"
    if _UNREACHABLE.search(everything):
        return f"the broker did not answer: {_innermost(reasons)}"
    return None


def _innermost(reasons: list[str]) -> str:
    for reason in reversed(reasons):
        if not any(mark in reason for mark in _NOISE):
            return _first_line(reason)
    return _first_line(reasons[-1]) if reasons else ""


def _first_line(reason: str) -> str:
    """Return the first line of a reason; for Python's traceback, the exception's line."""
    if _TRACEBACK in reason:
        lines = [line for line in reason.splitlines() if line.strip()]
        raised = [line for line in lines if re.match(r"^[A-Za-z_][\w.]*(Error|Exception)\b", line)]
        return _OWN.sub("", (raised or lines)[-1].strip())[:600]
    line = next((line.strip() for line in reason.splitlines() if line.strip()), "")
    return _STATE.sub("", line)[:600]


def reasons_of(error: BaseException) -> Iterator[str]:
    """Yield `Class: message` of the error and of its causes, outermost first."""
    origin = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    if origin is None:
        yield f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        if error.__cause__ is not None:
            yield from reasons_of(error.__cause__)
        return
    yield from _java_reasons(origin)


def _java_reasons(throwable: Any) -> Iterator[str]:
    for _depth in range(20):  # a cycle of causes would never end
        if throwable is None:
            return
        yield str(throwable.toString())
        throwable = throwable.getCause()
