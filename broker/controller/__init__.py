"""The controller of a cluster on ZooKeeper: who leads, who has replicas, and telling the brokers.

Exactly one broker is it at a time. It may follow a controller of Apache Kafka 3.9 and be followed
by one: the tree holds all that the next one needs, and the requests are Kafka's.

Pure: decisions as functions of values.

* `cluster_state`: what is known of the cluster, and how far each partition and replica came.
* `elections`, `isr_changes`, `reassignment_rules`, `balance`: who leads, which ISR is granted, what
  is moved, what is given back.
* `request_batch`: who must be told what, as messages.

Steps, in the house's form of waiting, one after the other:

* `fenced_store`: writes that hold only for the controller. `controller_tree`: what is in the tree.
* `leader_elections`, `replica_transitions`: the state machines: tree, then memory, then requests.
* `topic_deletions`, `reassignments`, `asked_elections`, `alterations`: what takes several of these.
* `term`: one term of office, and what is done about each change.

Running:

* `events`: the queue. `channels`: a queue of requests per broker. `sending`: a step's requests.
* `cluster_controller`: elections, watches; what the rest of the broker sees.
* `controller_requests`: what brokers and clients ask the controller.
"""
