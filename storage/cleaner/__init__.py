"""Compaction: of each key the latest record stays (Kafka's `LogCleaner.Cleaner`).

A cleaning reads the dirty part of a log into a map from key to latest offset (`offset_map`), puts
neighbouring segments into groups (`grouping`), writes each group anew without the records that the
map and the rules of `retained` and `transactions` drop (`rewrite`), and installs what was written.

`work` is what a child process does of it, in steps; `cleaning` is the whole, advanced on the loop.
"""
