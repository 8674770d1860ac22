"""Exactly once, tried: clients under faults write a history, and a checker looks what it breaks.

    history.py        what a client noted, a line per event; the format of the file
    model.py          events put together: transactions, what they wrote, who read it
    visibility.py     aborted, uncommitted and lost writes, torn transactions
    log_order.py      offsets: duplicates, two values at one offset, sends out of order
    streams.py        what one consumer saw in a row: skipped and repeated polls
    cycles.py         G0 and G1c, by a graph of dependencies
    effects.py        consume-transform-produce: an input's effect twice, or never
    checker.py        all of them over one history: `python -m tests.anomalies.checker DIR`
    workload/         the clients, each a process of its own
    faults/           the proxy between clients and broker, and who pauses and kills
    sabotage.py       brokers that lack one guarantee, for the proof of the checker
    run.py            one run from a seed: `scripts/anomalies`

The definitions are those of Jepsen's Kafka workload (jepsen.tests.kafka);
docs/developing/exactly-once.md says
where this one differs. The code is our own.
"""
