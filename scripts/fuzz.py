"""Sends a whole broker in memory mutated frames, from a seed: docs/developing/hostile-clients.md.

  scripts/fuzz --frames 1000000         a million of them, on all cores
  scripts/fuzz --seed 7 --chunk 12      one chunk again: the same frames, the same broker
  scripts/fuzz --handshakes 100000      TLS handshakes that no honest client begins
  scripts/fuzz --logins 100000          attempts to log in, right and wrong ones

The exit code is 0 if nothing was found.
"""

import argparse
import gc
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.fuzz.handshakes import run_handshakes
from tests.fuzz.logins import run_attempts
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
    parser.add_argument("--handshakes", type=int, metavar="COUNT", help="of TLS, instead of frames")
    parser.add_argument("--logins", type=int, metavar="COUNT", help="by SASL, instead of frames")
    arguments = parser.parse_args(argv)
    if arguments.handshakes is not None:
        return fuzz_handshakes(Console(), arguments.seed, arguments.handshakes, arguments.jobs)
    limits = Limits(turn_s=arguments.turn)
    count = arguments.frames if arguments.logins is None else arguments.logins
    numbers = range(-(-count // CHUNK_FRAMES))
    if arguments.chunk is not None:
        numbers = range(arguments.chunk, arguments.chunk + 1)
    chunks = [Chunk(seed=arguments.seed, number=n, frames=CHUNK_FRAMES) for n in numbers]
    work = partial(one, run_chunk if arguments.logins is None else run_attempts, limits)
    return run(Console(), chunks, work, min(arguments.jobs, len(chunks)))


def fuzz_handshakes(console: Console, seed: int, count: int, jobs: int) -> int:
    """Send mutated TLS handshakes; a chunk is one seed after the other."""
    began = time.monotonic()
    refused: Counter[str] = Counter()
    clients = succeeded = 0
    findings = []
    seeds = range(seed, seed + -(-count // CHUNK_FRAMES))
    with get_context("spawn").Pool(min(jobs, len(seeds))) as pool:
        work = partial(run_handshakes, clients=CHUNK_FRAMES)
        for number, result in zip(seeds, pool.imap(work, seeds), strict=True):
            clients += result.clients
            succeeded += result.succeeded
            refused += result.refused
            findings += [f"seed {number}: {finding}" for finding in result.findings]
    console.print(
        f"{clients:,} handshakes in {time.monotonic() - began:.0f} s: {succeeded:,} succeeded;",
        ", ".join(f"{name} {number:,}" for name, number in refused.most_common()),
        highlight=False,
    )
    for finding in findings:
        console.print(finding, highlight=False)
    return 1 if findings else 0


Work = Callable[[Chunk], tuple[int, Result]]


def run(console: Console, chunks: Sequence[Chunk], work: Work, jobs: int) -> int:
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
        for chunk_frames, result in results(chunks, work, jobs):
            total.merge(result)
            progress.update(task, advance=chunk_frames, found=len(total.findings.first))
    took = time.monotonic() - began
    show(console, total, took, jobs)
    return 1 if total.findings else 0


def results(chunks: Sequence[Chunk], work: Work, jobs: int) -> Iterator[tuple[int, Result]]:
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


def one(
    send: Callable[[Chunk, Limits], Result], limits: Limits, chunk: Chunk
) -> tuple[int, Result]:
    return chunk.frames, send(chunk, limits)


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
