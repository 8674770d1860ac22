"""Compaction: keeps the latest record of each key (Kafka's `LogCleaner.Cleaner`).

A cleaning reads the dirty part of a log into a map from key to latest offset (`offset_map`), puts
neighbouring segments into groups (`grouping`), rewrites each group without the records that the map
and the rules of `retained` and `transactions` drop (`rewrite`), and installs the new segments.

`work` has the steps that a child process runs; `cleaning` is one whole cleaning, advanced on the
event loop.
"""
