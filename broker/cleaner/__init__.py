"""The log cleaner's threads: loops on the event loop that have child processes do the work.

`log_cleaner` is the pool, `cleaning_steps` advances one cleaning (imported for the first one),
`throttler` bounds the rate of all reads and writes. `storage.cleaner` decides what is cleaned, and
how.
"""
