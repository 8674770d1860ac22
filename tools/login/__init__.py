"""How commands say who they are: SASL, as the client's settings ask for it.

`protocol.sasl.conversations` has the client's sides of the mechanisms, `tokens` says where
OAUTHBEARER's tokens come from, `session` what goes over a connection. Settings have librdkafka's
names; Kafka's become those in `tools.java_logins`.
"""
