"""Access rules (ACLs) as values: names and codes, filters, and which rule decides. Pure.

* `vocabulary` has Kafka's enums with their codes on the wire and their names in ZooKeeper,
* `rules` one rule, `filters` which rules a request selects,
* `hosts` which patterns of hosts a client's address matches,
* `index` all rules, and the decision about one action with its reason.

The broker decides by it, `pykafkalog acls --explain` explains by it.
"""
