"""Sends a whole broker in memory mutated frames, from a seed: docs/developing/hostile-clients.md.

  scripts/fuzz --frames 1000000         a million of them, on all cores
  scripts/fuzz --seed 7 --chunk 12      one chunk again: the same frames, the same broker

The exit code is 0 if nothing was found.
"""

import argparse
import gc
import os
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.fuzz.run import Chunk, Limits, Result, prepare, run_chunk

CHUNK_FRAMES = 2_000


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--frames", type=int, default=100_000, metavar="COUNT")
    parser.add_argument("--chunk", type=int, metavar="K", help="this one only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument(
        "--turn",
        type=float,
        default=0.25,
        metavar="S",
        help="longest turn of the loop, CPU seconds",
    )
    arguments = parser.parse_args(argv)
    limits = Limits(turn_s=arguments.turn)
    numbers = range(-(-arguments.frames // CHUNK_FRAMES))
    if arguments.chunk is not None:
        numbers = range(arguments.chunk, arguments.chunk + 1)
    chunks = [Chunk(seed=arguments.seed, number=n, frames=CHUNK_FRAMES) for n in numbers]
    return run(Console(), chunks, limits, min(arguments.jobs, len(chunks)))


def run(console: Console, chunks: Sequence[Chunk], limits: Limits, jobs: int) -> int:
    began = time.monotonic()
    total = Result()
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[found]} kinds of findings"),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=sum(chunk.frames for chunk in chunks), found=0)
        for chunk_frames, result in results(chunks, limits, jobs):
            total.merge(result)
            progress.update(task, advance=chunk_frames, found=len(total.findings.first))
    took = time.monotonic() - began
    show(console, total, took, jobs)
    return 1 if total.findings else 0


def results(chunks: Sequence[Chunk], limits: Limits, jobs: int) -> Iterator[tuple[int, Result]]:
    work = partial(one, limits)
    if jobs == 1:
        prepare()
        yield from map(work, chunks)
        return
    # Each process does some chunks only; its end gives its memory back.
    with get_context("spawn").Pool(jobs, ready, maxtasksperchild=50) as pool:
        yield from pool.imap_unordered(work, chunks)


def ready() -> None:
    prepare()
    gc.collect()
    gc.freeze()


def one(limits: Limits, chunk: Chunk) -> tuple[int, Result]:
    return chunk.frames, run_chunk(chunk, limits)


def show(console: Console, total: Result, took_s: float, jobs: int) -> None:
    console.print(
        f"{total.frames} frames in {took_s:.0f} s on {jobs} processes "
        f"({total.frames / took_s:.0f} a second): {total.answers} answered, {total.closed} closed, "
        f"{total.silent} waited for or silent; {total.acknowledged} records of a good client; "
        f"at most {total.rss_bytes >> 20} MB after a chunk"
    )
    console.print("longest turns of the loop, CPU:")
    for turn_s, text in total.turns[:5]:
        console.print(
            f"  {1000 * turn_s:.0f} ms  {text}", markup=False, highlight=False, soft_wrap=True
        )
    for line in total.findings.lines():
        console.print(line[:400], markup=False, highlight=False, soft_wrap=True)
    console.print("[red]FOUND[/red]" if total.findings else "[green]nothing found[/green]")


if __name__ == "__main__":
    sys.exit(main())
