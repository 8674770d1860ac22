"""This broker as a member of a cluster on ZooKeeper; a stand-alone broker uses none of it.

The controller, here or on another broker, decides who leads which partition, and tells every broker
by three requests, which one fence orders (`controller_fence`):

    LeaderAndIsr     `leadership`        this broker leads or follows partitions
    StopReplica      `stopping`          it is a replica no longer, or the topic is being deleted
    UpdateMetadata   `metadata_updates`  the image: all partitions, and the live brokers

Requests to the controller go through `controller_channel`. `registration` makes this broker known
at /brokers/ids, `topic_settings` follows the topics' own configs in the tree, `topic_admin`
changes topics, `controlled_shutdown` hands over leadership before a stop. `cluster_parts` makes all
of these; `broker.startup.cluster_start` starts and stops them.

Source: the ZooKeeper mode of Kafka 3.9 (`kafka.server.KafkaServer`, `KafkaApis`, `ReplicaManager`).
"""
