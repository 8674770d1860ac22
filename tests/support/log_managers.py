"""A log manager over directories not locked yet: `startup` locks them and loads the logs."""

from collections.abc import Callable
from random import Random

from config.broker_config import BrokerConfig
from storage.clock import Clock
from storage.filesystem import FileSystem
from storage.log_manager import LogManager
from storage.manager.directories import LogDirectories, run_at_once
from storage.open_files import OpenFiles


def log_manager(
    config: BrokerConfig,
    clock: Clock,
    fs: FileSystem,
    *,
    on_offline: Callable[[str], object] = lambda path: None,
    defer: Callable[[Callable[[], None]], object] = run_at_once,
    random: Random | None = None,
    open_files: OpenFiles | None = None,
) -> LogManager:
    """`on_offline` is called with a directory that failed, when its logs are out of service."""
    directories = LogDirectories(fs, config.log_dirs, defer)
    manager = LogManager(
        config, clock, directories, random=random or Random(1), open_files=open_files
    )
    directories.listeners.append(on_offline)
    return manager
