"""Dependencies between committed transactions as a graph, and its cycles.

G1c   edges: T1 → T2 when T2 read a value of T1 (wr), and when T2 followed T1 in one process.
      Readers see only what is committed, so what flows must flow forward in time
G0    edges: T1 → T2 when T1's write lies right before T2's in a key (ww). Cycles here are
      counted only: see log_order
"""

from collections.abc import Iterator
from itertools import pairwise

import networkx

from tests.anomalies.findings import Anomaly, Finding
from tests.anomalies.model import History, Transaction, Write, committed


def information_cycles(history: History) -> Iterator[Finding]:
    """G1c: the shortest cycle of each knot."""
    graph: networkx.DiGraph[Transaction] = networkx.DiGraph()
    last_of: dict[str, Transaction] = {}
    for one in committed(history.transactions):
        before = last_of.get(one.process)
        if before is not None:
            graph.add_edge(before, one, why=f"{one} followed {before} in its process")
        last_of[one.process] = one
        for read in one.reads:
            writer = history.writer_of.get(Write(read.key, read.value))
            if writer is not None and writer.is_committed:
                why = f"{one} read {read.value} of {writer} at {read.key}@{read.offset}"
                graph.add_edge(writer, one, why=why)
    for cycle in _shortest_cycles(graph):
        steps = [graph.edges[a, b]["why"] for a, b in pairwise([*cycle, cycle[0]])]
        yield Finding(
            anomaly=Anomaly.INFORMATION_CYCLE,
            what=" → ".join(str(one) for one in [*cycle, cycle[0]]),
            evidence=(*steps, *(one.describe() for one in cycle)),
        )


def overlapping_write_cycles(history: History) -> int:
    """How many knots of write cycles there are: Kafka interleaves transactions that overlap."""
    graph: networkx.DiGraph[Transaction] = networkx.DiGraph()
    for log in history.committed_log.values():
        for (_, _, first), (_, _, second) in pairwise(log):
            if first is not second:
                graph.add_edge(first, second)
    return sum(len(knot) > 1 for knot in networkx.strongly_connected_components(graph))


def _shortest_cycles(graph: "networkx.DiGraph[Transaction]") -> Iterator[list[Transaction]]:
    """One for each strongly connected component (Tarjan's, in networkx) that has any."""
    for one in networkx.nodes_with_selfloops(graph):
        yield [one]
    for knot in networkx.strongly_connected_components(graph):
        if len(knot) > 1:
            part = graph.subgraph(knot)
            back = (
                networkx.shortest_path(part, target, source)
                for source, target in part.edges
                if source is not target
            )
            yield min(back, key=len)
