"""One file per API: request and response together, each field a line with its version range.

A declaration stands for all versions of a message. Nested groups precede the groups that contain
them and have Kafka's names. The declarations follow Kafka 4.3; versions that Kafka 4 dropped follow
3.9. Version notes at the head of a file say what changed. One note holds for all files: if a
response has throttle_time_ms, the client waits from the version on that KIP-219 (Kafka 2.0) added
to the API; in older versions the broker waited before it answered.
"""
