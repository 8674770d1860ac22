"""What happens between the start of the process and the first request, and what is said about it.

`broker.server` calls these in their order: whose directories they are, opening the logs, what they
hold that nobody serves, where the metrics listen, who may come in; and what a person is told when
the broker does not start.
"""
