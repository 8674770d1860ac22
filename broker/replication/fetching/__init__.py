"""Copying partitions from their leaders.

* `replica_fetchers`: the fetcher of each partition; the table of partitions calls it.
* `replica_fetcher`: a task per leader and fetcher number: fetch, append, again.
* `assignment`: which fetcher number a partition has.
* `leader_endpoint`: the leader as a fetcher sees it, in questions and answers.
* `client_session`: the partitions that a fetch names, or the leader knows (KIP-227). Pure.
* `steps`: the follower's step after an answer for a partition. Pure.
* `settings`, `statistics`: values.

Only the fetchers change the log of a follower (`broker.replication.copying`), apart from retention.
After `kafka.server.AbstractFetcherThread`, `AbstractFetcherManager`, `ReplicaFetcherThread`.
"""
