"""The controller of a cluster on ZooKeeper: leaders, replicas, and the requests to the brokers.

Exactly one broker is the controller at a time. It may follow a controller of Apache Kafka 3.9 and
be followed by one: the tree holds all that the next one needs, and the requests are Kafka's.

Pure: decisions as functions of values.

* `cluster_state`: the state of the cluster, and the stage of each partition and replica.
* `elections`, `isr_changes`, `reassignment_rules`, `balance`: which replica leads, which ISR is
  granted, which replicas move, which partitions go back to their preferred leaders.
* `request_batch`: the messages to the brokers.

Steps, in the house's form of waiting, one after the other:

* `fenced_store`: writes that hold only for the controller. `controller_tree`: the nodes, as values.
* `leader_elections`, `replica_transitions`: the state machines: tree, then memory, then requests.
* `topic_deletions`, `reassignments`, `asked_elections`, `alterations`: work with several of these.
* `term`: one term of office, and its work on each change.

Running:

* `events`: the queue. `channels`: a queue of requests per broker. `sending`: a step's requests.
* `cluster_controller`: elections, watches; the interface for the rest of the broker.
* `controller_requests`: the requests of brokers and clients to the controller.
"""
