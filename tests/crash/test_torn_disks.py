"""Power losses: the log is a prefix of itself, whatever part of the unsynced work is on the disk.

Each scenario lets a partition work on a recorded disk (`tests.support.crash_lab`) and opens it as
it may look after a power loss at any operation (`tests.support.recording_filesystem`); some of
these starts are interrupted by a second power loss (S-REC-10). The small portion of the default
suite draws a few hundred states from fixed seeds; `-m crash` draws thousands.

A failure names its seed: CRASH_SEED=<seed> runs that one workload alone, CRASH_STATES sets how many
states are drawn in all.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from config.topic_config import TopicConfig
from tests.support.crash_lab import Expectation, Truth, Workload, verify, verify_again
from tests.support.crash_seeds import draw_states, wanted_states
from tests.support.recording_filesystem import PowerLoss, RecordingFileSystem

SCENARIOS = {
    "append": {"append": 12, "flush": 2},
    "roll": {"append": 10, "roll": 2, "flush_rolled": 3, "flush": 1, "checkpoint": 1},
    "retention": {
        "append": 12,
        "flush_rolled": 2,
        "retention": 2,
        "delete_logs": 1,
        "delete_records": 1,
        "checkpoint_starts": 1,
        "checkpoint": 1,
    },
    "truncation": {"append": 10, "truncate": 3, "start_over": 1, "flush": 2, "checkpoint": 1},
    "checkpoint": {"append": 8, "flush": 2, "checkpoint": 3, "restart": 1, "checkpoint_starts": 1},
    "recovery": {"append": 10, "killed": 2, "flush": 1, "truncate": 1, "checkpoint": 1},
    "start over": {
        "append": 12,
        "roll": 2,
        "start_over": 1,
        "start_over_inside": 3,
        "flush": 1,
        "flush_rolled": 1,
        "checkpoint": 1,
        "killed": 1,
    },
    "tails": {
        "append": 10,
        "settle": 4,
        "roll": 1,
        "flush": 1,
        "checkpoint": 1,
        "truncate": 1,
        "start_over": 1,
        "retention": 1,
        "killed": 2,
        "restart": 1,
    },
    "aborted": {
        "append": 4,
        "abort": 8,
        "settle": 4,
        "roll": 2,
        "flush": 1,
        "checkpoint": 1,
        "truncate": 2,
        "start_over": 1,
        "start_over_inside": 1,
        "retention": 1,
        "delete_records": 1,
        "killed": 2,
        "restart": 1,
    },
    "all": {
        "append": 20,
        "flush": 1,
        "roll": 1,
        "flush_rolled": 2,
        "retention": 1,
        "delete_logs": 1,
        "delete_records": 1,
        "checkpoint_starts": 1,
        "checkpoint": 2,
        "truncate": 2,
        "start_over": 1,
        "restart": 1,
        "killed": 1,
    },
}
STATES_PER_WORKLOAD = 25
FIRST_SEED = 1000
"""CI draws the same states every time; CRASH_HUNT=1 draws others, CRASH_STATES more of them."""


def run(scenario: str, seed: int, states: int) -> int:
    """Draw `states` states of one workload; returns how many starts were tried."""
    random = Random(f"{scenario}-{seed}")
    work = Workload(random)
    work.begin()
    work.run(SCENARIOS[scenario], random.randint(8, 30))
    loss = PowerLoss(work.fs)
    tried = 0
    for number in range(states):
        at = random.randint(1, loss.last)
        kind = ("state", "kept", "lost", "state", "state", "state")[number % 6]
        state = loss.state(at, random) if kind == "state" else getattr(loss, kind)(at)
        before = RecordingFileSystem(state)
        expected = work.expectation(at)
        try:
            truth = verify(state, expected, work.config, work.clock)
            tried += 1
            if number % 3 == 0:
                tried += crash_again(before, truth, work, random)
        except Exception as error:
            error.add_note(
                f"CRASH_SEED={seed} {scenario}, state {number} ({kind} at {at})\n{work.story(at)}"
            )
            raise
    return tried


def crash_again(fs: RecordingFileSystem, truth: Truth, work: Workload, random: Random) -> int:
    """Power goes while the log is being recovered: the next start finds the same (S-REC-10)."""
    expected = Expectation(
        lines=(truth.line,),
        flushed=truth.end,
        start=truth.start,
        promised_start=truth.promised_start,
        end=truth.end,
    )
    return verify_again(fs, expected, work.config, work.clock, random)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_power_loss_leaves_a_prefix_with_all_that_was_flushed(scenario):
    for seed in range(2):
        run(scenario, seed, 12)


SMALL = TopicConfig(segment_index_bytes=4096)


def at_every_moment(work: Workload, action: Callable[[], object]) -> None:
    """The process dies, or the power goes, before, between and after all operations of an action.

    Nothing is drawn here: everything is on the disk, or only the synced contents, or these under
    all names.
    """
    begin = work.fs.now
    action()
    loss = PowerLoss(work.fs)
    assert begin < loss.last
    for at in range(begin, loss.last + 1):
        for state in (loss.kept(at), loss.names(at), loss.lost(at)):
            verify(state, work.expectation(at), work.config, work.clock)


def test_s_roll_3_an_empty_segment_begun_again_is_never_gone():
    work = Workload(Random(1), config=replace(SMALL, file_delete_delay_ms=0))
    work.begin()
    work.append()
    work.roll()
    work.delete_up_to(work.log.log_end_offset)
    work.retention()
    work.flush_rolled()
    assert (work.log.segments.base_offsets, work.log.size) == ([work.log.log_end_offset], 0)
    # A failed write has left some bytes, so that the roll does something.
    work.log.segments.active.write(b"half a batch")
    at_every_moment(work, work.roll)
    at_every_moment(work, lambda: work.start_over_at(work.log.log_end_offset))


def test_starting_over_at_the_base_of_a_segment_leaves_a_prefix_at_every_moment():
    work = Workload(Random(1), config=SMALL)
    work.begin()
    for _ in range(3):
        work.append()
        work.roll()
    work.append()
    middle = work.log.segments.base_offsets[1]
    at_every_moment(work, lambda: work.start_over_at(middle))


def test_s_fl_2_a_checkpoint_from_before_a_truncation_promises_nothing():
    # The state that showed it: killed after a truncation and an append, power lost after the start.
    run("recovery", 497490, 10)


def test_s_fl_2_nor_does_one_that_the_log_has_outgrown_again():
    work = Workload(Random(1), config=SMALL)
    work.begin()
    for _ in range(6):
        work.append()
    work.restart()  # the checkpoint names the end
    old_end = work.log.log_end_offset
    work.truncate_at(work.truth.line[-4].base)
    while work.log.log_end_offset < old_end:
        work.append()
    work.killed()
    work.roll()
    at_every_moment(work, work.append)


def test_s_fl_2_nor_does_it_where_a_log_starts_over():
    work = Workload(Random(1), config=replace(SMALL, index_interval_bytes=0))
    work.begin()
    for _ in range(8):
        work.append()
    work.flush()
    work.checkpoint()
    work.truncate_at(work.truth.line[1].base)
    work.append()
    work.append()
    at_every_moment(work, lambda: work.start_over_at(work.log.log_end_offset + 1))


def test_s_idem_3_an_open_transaction_begins_where_it_began_though_that_was_deleted():
    # The state that showed it: retention, a kill, a truncation to the log start, a stop, retention.
    run("all", 144902, 10)


@pytest.mark.crash
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_thousands_of_power_losses(scenario, record_property, capsys):
    line = draw_states(
        scenario,
        lambda seed: run(scenario, seed, STATES_PER_WORKLOAD),
        wanted_states(7000) // len(SCENARIOS),
        FIRST_SEED,
        record_property,
    )
    with capsys.disabled():
        print(f"\n{line}")
