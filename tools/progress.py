"""A progress bar on standard error, if that is a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from config.terminal import console, marked


@contextmanager
def progress_bar(title: str, total: int | None, *, bytes_: bool = False) -> Iterator[Any]:
    """Yield `advance(amount, absolute=False)`, which does nothing without a terminal or a total."""
    if total is None or not sys.stderr.isatty():
        yield lambda _amount, absolute=False: None
        return
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    counter = DownloadColumn() if bytes_ else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), counter, TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task(marked(title), total=total)

        def advance(amount: int, absolute: bool = False) -> None:
            if absolute:
                progress.update(task, completed=amount)
            else:
                progress.advance(task, amount)

        yield advance
