"""The checker on histories by hand: each anomaly is found, and nothing in what Kafka allows."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.anomalies.checker import check, main
from tests.anomalies.findings import Anomaly, Report
from tests.anomalies.history import (
    Event,
    HistoryFormatError,
    Recorder,
    in_order,
    read_history,
)

A, B = "t-0", "t-1"
Values = Mapping[str, list[tuple[int, str]]]


class Script:
    """Writes a history: each event is later than the one before."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.now = 0
        self.ops = 0

    def event(self, process: str, f: str, kind: str, op: int = -1, **more: Any) -> None:
        self.now += 10
        self.events.append(Event(time=self.now, process=process, f=f, type=kind, op=op, more=more))

    def begin(
        self,
        process: str,
        *sends: tuple[str, str],
        polled: Values | None = None,
        group: str | None = None,
        plain: bool = False,
    ) -> int:
        self.ops += 1
        steps: list[list[Any]] = [["send", key, value] for key, value in sends]
        if polled is not None:
            steps.insert(0, ["poll", as_json(polled)])
        more: dict[str, Any] = {} if group is None else {"group": group}
        if plain:
            more["plain"] = True
        tx_id = process.partition(".")[0]
        self.event(process, "txn", "invoke", self.ops, value=steps, transactional_id=tx_id, **more)
        return self.ops

    def ask(self, process: str, op: int, **acks: int) -> None:
        self.event(process, "txn", "committing", op, acks=acks)

    def end(self, process: str, op: int, kind: str = "ok", **acks: int) -> None:
        self.event(process, "txn", kind, op, acks=acks)

    def txn(self, process: str, *sends: tuple[str, str], end: str = "ok", **more: Any) -> int:
        """A transaction from begin to end; sends are (key@offset, value)."""
        plain, acks = [], {}
        for place, value in sends:
            key, _, offset = place.partition("@")
            plain.append((key, value))
            if offset:
                acks[value] = int(offset)
        op = self.begin(process, *plain, **more)
        if end != "fail":
            self.ask(process, op, **acks)
        if end != "":
            self.end(process, op, end, **acks)
        return op

    def poll(self, process: str, values: Values) -> None:
        self.event(process, "poll", "ok", value=as_json(values))

    def assign(self, process: str, *keys: str) -> None:
        self.event(process, "assign", "ok", value=list(keys))

    def final(
        self,
        values: Values,
        stable: dict[str, int] | None = None,
        ends: dict[str, int] | None = None,
        resent: Mapping[str, list[str]] | None = None,
    ) -> None:
        self.event(
            *("final", "final", "ok"),
            value=as_json(values),
            stable=stable or {},
            ends=ends or {},
            resent=resent or {},
        )

    def report(self) -> Report:
        return check(in_order(self.events))

    def kinds(self) -> set[Anomaly]:
        return set(self.report().kinds)


def as_json(values: Values) -> dict[str, list[list[Any]]]:
    return {key: [list(pair) for pair in pairs] for key, pairs in values.items()}


@pytest.fixture
def script() -> Script:
    return Script()


# ---- what is allowed


def test_commits_aborts_gaps_and_late_readers_are_clean(script: Script) -> None:
    script.txn("p", (f"{A}@0", "a"), (f"{B}@0", "b"))
    script.txn("p", (f"{A}@2", "x"), end="fail")
    script.txn("p", (f"{A}@4", "c"))
    script.poll("r", {A: [(0, "a"), (4, "c")]})
    script.poll("s", {A: [(0, "a")], B: [(0, "b")]})
    script.final({A: [(0, "a"), (4, "c")], B: [(0, "b")]}, {A: 6, B: 2}, {A: 6, B: 2})
    report = script.report()
    assert report.is_clean, report.text()
    assert "no anomalies" in report.text()
    assert (report.counts["committed"], report.counts["aborted"]) == (2, 1)


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("end", ["info", ""])
def test_an_indeterminate_transaction_may_be_there_or_not(
    script: Script, end: str, seen: bool
) -> None:
    script.txn("p", (A, "a"), (B, "b"), end=end)
    script.final({A: [(0, "a")], B: [(0, "b")]} if seen else {A: [], B: []})
    report = script.report()
    assert report.is_clean, report.text()
    assert (report.counts["indeterminate"], report.counts["of these seen"]) == (1, int(seen))


def test_overlapping_transactions_may_interleave_their_writes(script: Script) -> None:
    one, two = script.begin("p", (A, "a"), (B, "b")), script.begin("q", (A, "c"), (B, "d"))
    script.ask("p", one, a=0, b=1)
    script.ask("q", two, c=1, d=0)
    script.end("p", one)
    script.end("q", two)
    report = script.report()
    assert report.is_clean, report.text()
    assert "1 knots of transactions" in report.text()


def test_a_rebalance_may_go_back_and_forth(script: Script) -> None:
    script.txn("p", (f"{A}@0", "a"), (f"{A}@1", "b"), (f"{A}@2", "c"))
    script.assign("r", A)
    script.poll("r", {A: [(0, "a")]})
    script.assign("r", A)
    script.poll("r", {A: [(2, "c")]})
    script.assign("r", A)
    script.poll("r", {A: [(1, "b"), (2, "c")]})
    assert script.report().is_clean


def test_what_was_not_reached_is_not_lost(script: Script) -> None:
    script.txn("p", (f"{A}@0", "a"))
    script.txn("p", (f"{A}@2", "b"))
    script.poll("r", {A: [(0, "a")]})
    assert script.report().is_clean


def test_an_aborted_effect_may_be_repeated(script: Script) -> None:
    script.txn("p", (f"{A}@0", "a"))
    script.txn("w", (f"{B}@0", "x"), polled={A: [(0, "a")]}, group="g", end="fail")
    script.txn("w", (f"{B}@1", "y"), polled={A: [(0, "a")]}, group="g")
    script.txn("v", (f"{B}@3", "z"), polled={A: [(0, "a")]}, group="another")
    assert script.report().is_clean


# ---- visibility


def test_aborted_read(script: Script) -> None:
    script.txn("p", (f"{A}@0", "a"), end="fail")
    script.poll("r", {A: [(0, "a")]})
    script.poll("s", {A: [(0, "a")]})
    report = script.report()
    assert report.kinds == {Anomaly.ABORTED_READ: 1}
    assert "r read a at t-0@0" in report.text() and "p#1 of p" in report.text()


def test_a_transaction_that_never_asked_for_commit_is_aborted(script: Script) -> None:
    script.begin("killed", (A, "a"))
    script.final({A: [(0, "a")]})
    assert script.kinds() == {Anomaly.ABORTED_READ}


@pytest.mark.parametrize("end", ["ok", "info"])
def test_uncommitted_read(script: Script, end: str) -> None:
    op = script.begin("p", (A, "a"))
    script.poll("r", {A: [(0, "a")]})
    script.ask("p", op, a=0)
    script.end("p", op, end)
    assert script.kinds() == {Anomaly.UNCOMMITTED_READ}


def test_lost_write_below_what_was_read(script: Script) -> None:
    script.txn("p", (f"{A}@0", "a"))
    script.txn("p", (f"{A}@2", "b"))
    script.poll("r", {A: [(2, "b")]})
    assert script.kinds() == {Anomaly.LOST_WRITE}


def test_lost_write_in_the_final_read(script: Script) -> None:
    script.txn("p", (A, "a"))
    script.final({A: []})
    assert script.kinds() == {Anomaly.LOST_WRITE}


def test_torn_transaction(script: Script) -> None:
    script.txn("p", (A, "a"), (B, "b"), end="info")
    script.final({A: [(0, "a")], B: []})
    assert script.kinds() == {Anomaly.TORN_TRANSACTION}


def test_phantom(script: Script) -> None:
    script.txn("p", (A, "a"))
    script.final({A: [(0, "a")], B: [(0, "a")]})
    assert script.kinds() == {Anomaly.PHANTOM}


def test_hanging_transaction(script: Script) -> None:
    script.final({A: []}, stable={A: 3}, ends={A: 5})
    assert script.kinds() == {Anomaly.HANGING_TRANSACTION}


# ---- offsets


def test_duplicate(script: Script) -> None:
    script.txn("p", (A, "a"))
    script.final({A: [(0, "a"), (1, "a")]})
    assert script.kinds() == {Anomaly.DUPLICATE}


def test_what_its_producer_sent_again_is_no_duplicate_and_in_no_order(script: Script) -> None:
    for op in [script.begin("p", (A, value), plain=True) for value in "ab"]:
        script.ask("p", op)
        script.end("p", op)
    script.final({A: [(0, "b"), (1, "a"), (2, "b")]}, resent={A: ["b"], B: ["a"]})
    report = script.report()
    assert report.is_clean
    assert report.notes == ("2 records were sent again by their own producers",)


def test_what_was_sent_again_elsewhere_is_a_duplicate_here(script: Script) -> None:
    script.txn("p", (A, "a"))
    script.final({A: [(0, "a"), (1, "a")]}, resent={B: ["a"], A: ["b"]})
    assert script.kinds() == {Anomaly.DUPLICATE}


def test_an_answer_that_differs_from_what_is_read_is_a_duplicate(script: Script) -> None:
    script.txn("p", (f"{A}@0", "a"))
    script.poll("r", {A: [(7, "a")]})
    assert script.kinds() == {Anomaly.DUPLICATE}


def test_inconsistent_offset(script: Script) -> None:
    script.txn("p", (A, "a"), (A, "b"))
    script.poll("r", {A: [(0, "a")]})
    script.poll("s", {A: [(0, "b")]})
    assert Anomaly.INCONSISTENT_OFFSET in script.kinds()


def test_internal_non_monotonic_send(script: Script) -> None:
    script.txn("p", (f"{A}@1", "a"), (f"{A}@0", "b"))
    assert script.kinds() == {Anomaly.INTERNAL_NONMONOTONIC_SEND}


def test_non_monotonic_send_also_over_incarnations(script: Script) -> None:
    script.txn("p.1", (f"{A}@5", "a"))
    script.txn("p.2", (f"{A}@3", "b"))
    assert script.kinds() == {Anomaly.NONMONOTONIC_SEND}


def test_g0_write_cycle_of_transactions_that_do_not_overlap(script: Script) -> None:
    script.txn("p", (f"{A}@1", "a"), (f"{B}@1", "b"))
    script.txn("q", (f"{A}@0", "c"), (f"{B}@3", "d"))
    report = script.report()
    assert report.kinds == {Anomaly.WRITE_CYCLE: 1}
    assert "c at t-0@0 lies before writes of p#1" in report.text()


# ---- streams


def test_non_monotonic_polls(script: Script) -> None:
    script.txn("p", (f"{A}@0", "a"), (f"{A}@1", "b"))
    script.poll("r", {A: [(0, "a"), (1, "b")]})
    script.poll("r", {A: [(1, "b")]})
    assert script.kinds() == {Anomaly.NONMONOTONIC_POLL}


def test_internal_non_monotonic_poll(script: Script) -> None:
    script.txn("p", (f"{A}@0", "a"), (f"{A}@1", "b"))
    script.poll("r", {A: [(1, "b"), (0, "a")]})
    assert script.kinds() == {Anomaly.INTERNAL_NONMONOTONIC_POLL}


@pytest.mark.parametrize(
    ("internal", "anomaly"),
    [(False, Anomaly.SKIPPED_POLL), (True, Anomaly.INTERNAL_SKIPPED_POLL)],
)
def test_skipped_poll(script: Script, internal: bool, anomaly: Anomaly) -> None:
    for offset, value in enumerate("abc"):
        script.txn("p", (f"{A}@{offset}", value))
    script.poll("s", {A: [(0, "a"), (1, "b"), (2, "c")]})
    if internal:
        script.poll("r", {A: [(0, "a"), (2, "c")]})
    else:
        script.poll("r", {A: [(0, "a")]})
        script.poll("r", {A: [(2, "c")]})
    report = script.report()
    assert report.kinds == {anomaly: 1}
    assert "passed over 1 committed: @1=b" in report.text()


def test_intermediate_read(script: Script) -> None:
    script.txn("p", (f"{A}@0", "a"), (f"{A}@1", "b"), (f"{A}@2", "c"))
    script.poll("s", {A: [(0, "a"), (1, "b"), (2, "c")]})
    script.poll("r", {A: [(0, "a"), (2, "c")]})
    assert script.kinds() == {Anomaly.INTERMEDIATE_READ, Anomaly.INTERNAL_SKIPPED_POLL}


# ---- cycles and effects


def test_g1c_circular_information_flow(script: Script) -> None:
    one = script.begin("p", (A, "a"), polled={B: [(0, "b")]})
    two = script.begin("q", (B, "b"), polled={A: [(0, "a")]})
    for process, op, acks in (("p", one, {"a": 0}), ("q", two, {"b": 0})):
        script.ask(process, op, **acks)
        script.end(process, op)
    report = script.report()
    assert report.kinds == {Anomaly.INFORMATION_CYCLE: 1}
    assert "p#1 read b of q#2 at t-1@0" in report.text()


def test_g1c_through_the_order_of_a_process(script: Script) -> None:
    script.txn("p", (f"{A}@0", "a"), polled={B: [(0, "b")]})
    script.txn("p", (f"{A}@2", "c"))
    script.txn("q", (f"{B}@0", "b"), polled={A: [(2, "c")]})
    assert script.kinds() == {Anomaly.INFORMATION_CYCLE}


def test_information_that_flows_forward_is_no_cycle(script: Script) -> None:
    script.txn("p", (f"{A}@0", "a"))
    script.txn("q", (f"{B}@0", "b"), polled={A: [(0, "a")]})
    script.txn("p", (f"{A}@2", "c"), polled={B: [(0, "b")]})
    assert script.report().is_clean


@pytest.mark.parametrize("second_end", ["ok", "info"])
def test_duplicate_effect(script: Script, second_end: str) -> None:
    script.txn("p", (f"{A}@0", "a"))
    script.txn("w", (f"{B}@0", "x"), polled={A: [(0, "a")]}, group="g")
    script.txn("v", (f"{B}@2", "y"), polled={A: [(0, "a")]}, group="g", end=second_end)
    script.poll("r", {B: [(0, "x"), (2, "y")]})
    assert script.kinds() == {Anomaly.DUPLICATE_EFFECT}


def test_lost_effect(script: Script) -> None:
    script.txn("p", (f"{A}@0", "a"), (f"{A}@1", "b"))
    script.txn("w", (f"{B}@0", "x"), polled={A: [(1, "b")]}, group="g")
    assert script.kinds() == {Anomaly.LOST_EFFECT}


def test_an_input_of_an_undecided_transaction_is_not_lost_before_the_end(script: Script) -> None:
    script.txn("p", (f"{A}@0", "a"), (f"{A}@1", "b"))
    script.txn("w", (B, "x"), polled={A: [(0, "a")]}, group="g", end="")
    script.txn("v", (f"{B}@2", "y"), polled={A: [(1, "b")]}, group="g")
    assert script.report().is_clean
    script.final({A: [(0, "a"), (1, "b")], B: [(2, "y")]})
    assert script.kinds() == {Anomaly.LOST_EFFECT}  # Its offset is committed, its value is not.


@pytest.mark.parametrize("in_order", [True, False])
def test_records_of_an_idempotent_producer_keep_their_order(script: Script, in_order: bool) -> None:
    first, second = script.begin("p", (A, "a"), plain=True), script.begin("p", (A, "b"), plain=True)
    script.ask("p", first)
    script.ask("p", second)
    script.end("p", second, b=1 if in_order else 0)
    script.end("p", first, a=0 if in_order else 1)
    assert script.kinds() == (set() if in_order else {Anomaly.NONMONOTONIC_SEND})


# ---- files


def test_histories_of_several_processes_are_read_as_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = Recorder(tmp_path, "p"), Recorder(tmp_path, "r")
    op = first.next_op()
    first.note("txn", "invoke", op=op, value=[["send", A, "a"]], transactional_id="p")
    second.note("poll", "ok", value={A: [[0, "a"]]})
    first.note("txn", "fail", op=op)
    first.close()
    second.close()
    with (tmp_path / "p.jsonl").open("a") as killed:
        killed.write('{"time": 1, "proc')
    assert [event.type for event in read_history(tmp_path)] == ["invoke", "ok", "fail"]
    assert main([str(tmp_path)]) == 1
    assert "G1A ABORTED READ × 1" in capsys.readouterr().out


def test_a_broken_line_in_the_middle_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text('nonsense\n{"time":1,"process":"p","f":"assign","type":"ok","value":[]}\n')
    with pytest.raises(HistoryFormatError, match=r"h\.jsonl:1"):
        read_history(path)
