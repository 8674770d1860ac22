"""One file per API: request and response together, each field a line with its version range.

A declaration stands for all versions of a message. Nested groups come before what contains them
and bear Kafka's names. Facts of the wire are those of Kafka 4.3; versions that Kafka 4 dropped are
those of 3.9. Version notes at the head of a file say what changed, but for what holds everywhere:
where a response has throttle_time_ms, the client does the waiting from the version that KIP-219
(Kafka 2.0) added for it; in older ones the broker did.
"""
