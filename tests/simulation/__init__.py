"""A whole broker, its clients, its disk, its network and its time, in one process and from one
seed.

    run.py        one run: the broker's lives, the clients, the faults, the last read, the checks
    plan.py       the plan of a seed: settings, clients, faults, each as data
    lives.py      the broker: started, stopped, killed, paused, without power, on a broken disk
    disk.py       its disk, which forgets what was not synced
    workers.py    its workers, which take their time
    wire.py       requests on their way: late, repeated, cut off, unanswered
    readers.py    consumers: assigned ones, and members of groups
    clients.py    the clients, in the roles of `tests.anomalies.workload.roles`
    offsets.py    checks beside `tests.anomalies.checker`: committed offsets and members
    trace.py      a line for each event: the same for the same seed, byte for byte
    shrink.py     the smallest plan that still fails
    sabotage.py   brokers that lack one guarantee, which the simulation must find

Nothing here waits for real time, and there is no thread, socket or disk: `scripts/simulate`.
"""
