"""Copying partitions from their leaders.

* `replica_fetchers`: which partition is copied by whom; the one that the table of partitions tells.
* `replica_fetcher`: a task per leader and fetcher number: fetch, append, again.
* `assignment`: which fetcher number a partition has.
* `leader_endpoint`: the leader as a fetcher sees it, in questions and answers.
* `client_session`: what a fetch names, and what the leader knows already (KIP-227). Pure.
* `steps`: what an answer for a partition means. Pure.
* `settings`, `statistics`: values.

Only the fetchers change the log of a follower (`broker.replication.copying`), apart from retention.
After `kafka.server.AbstractFetcherThread`, `AbstractFetcherManager`, `ReplicaFetcherThread`.
"""
