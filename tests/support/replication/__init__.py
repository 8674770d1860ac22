"""Brokers of a cluster in one process, as far as replication goes, on a clock of their own."""
