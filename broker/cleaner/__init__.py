"""The log cleaner's threads: loops on the event loop that have child processes do the work.

`log_cleaner` is the pool, `cleaning_steps` advances one cleaning (imported at the first),
`throttler` bounds what all of them read and write. What is cleaned, and how, is `storage.cleaner`.
"""
