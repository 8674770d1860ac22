"""The cluster's metadata tree in ZooKeeper: a `MetadataStore` over kazoo, and registration.

    settings            the settings of the configuration about ZooKeeper
    session             the connection: states, the hand-over from kazoo's threads to the loop
    requests            pipelined requests, their bound, and waiting for them
    reads               nodes and their children, many at once
    writes              changes, together or each on its own; `planned_change`: one request
    operations          changes of the tree as requests of ZooKeeper
    change_logs         Kafka's notification nodes, by which brokers tell each other of changes
    node_watch          a watch of a node and its children
    log_watch           a watch of a tree that has a notification log
    zookeeper_store     `ZooKeeperStore`, of these
    registration        /brokers/ids/<id>
    encryption          TLS; `kazoo_parts`: parts that kazoo lacks

kazoo's calls are made on the loop, where none of them waits. Its threads hand their results to the
loop by `soon`, an argument of `ZooKeeperStore.open`. `open` imports kazoo, so a stand-alone broker
does not pay for it.

Sources: `kafka.zk.KafkaZkClient`, `kafka.zookeeper.ZooKeeperClient`, `kafka.zk.ZkData` (3.9).
"""
