"""Clusters on ZooKeeper for tests: Apache Kafka 3.9 and this broker, in any mix.

    member.py        one broker process of either kind: start, kill, stand still, stop, be replaced
    broker_cluster.py  some of them on one ZooKeeper, and questions to the whole
    network.py       proxies between brokers and before ZooKeeper: cuts in one or both directions
    view.py          the cluster as one broker describes it (Metadata)
    disk.py          log directories that can be full
    jumping_clock.py a wall clock of one broker that jumps
    replicas.py      are the copies of a partition the same bytes?
    kafka_tools.py   the command line of Apache Kafka 3.9

A scenario that a cluster of Apache Kafka alone does not pass says nothing about this broker, so
every one can be played with any kinds (`Kind`).
"""
