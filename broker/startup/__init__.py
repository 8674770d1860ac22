"""The steps between the start of the process and the first request, and their log messages.

`broker.server` calls them: `directory_identity` checks whose the log directories are, `log_loader`
opens the logs, `known_producers` and `stray_logs` look at what these hold, `metrics_export` opens
the metrics listener, `exposure` warns of open listeners, and `advice` explains a failed start.
"""
