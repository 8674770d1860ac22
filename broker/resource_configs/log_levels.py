"""Levels of this process' loggers, under the names of Kafka's log4j (KIP-412).

Loggers are Python's; the root is called `root`. Packages count as loggers too, so that a whole room
can be set to DEBUG at once (`broker.network`). A restart forgets the levels. After Kafka's
`Log4jController`.
"""

import logging
from typing import Final

ROOT: Final = "root"

TRACE: Final = 5
"""A level below DEBUG: the audit log says at it what was only looked at."""
logging.addLevelName(TRACE, "TRACE")

LEVELS: Final = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": TRACE,
    "WARN": logging.WARNING,
}
_NAMES: Final = {number: name for name, number in LEVELS.items()}


def levels() -> dict[str, str]:
    """Level in force by logger, the root first."""
    names = sorted(logging.root.manager.loggerDict)
    return {ROOT: _name(logging.root.level)} | {name: _name(_level_of(name)) for name in names}


def exists(logger: str) -> bool:
    """Whether a logger, or a package with loggers, has this name."""
    return logger == ROOT or logger in logging.root.manager.loggerDict


def set_level(logger: str, level: str) -> None:
    """Let `logger` log messages of `level` (a key of `LEVELS`) and above."""
    _logger(logger).setLevel(LEVELS[level])


def unset_level(logger: str) -> None:
    """Let `logger` inherit the level of its parent again."""
    _logger(logger).setLevel(logging.NOTSET)


def _logger(name: str) -> logging.Logger:
    return logging.root if name == ROOT else logging.getLogger(name)


def _level_of(name: str) -> int:
    """The level in force; unlike `logging.getLogger`, makes no logger for a package without one."""
    while name:
        found = logging.root.manager.loggerDict.get(name)
        if isinstance(found, logging.Logger) and found.level:
            return found.level
        name = name.rpartition(".")[0]
    return logging.root.level


def _name(level: int) -> str:
    """The log4j name of a level; the next one above for levels in between."""
    known = [number for number in sorted(_NAMES) if number >= level]
    return _NAMES[known[0]] if known else "FATAL"
