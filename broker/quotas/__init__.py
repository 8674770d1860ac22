"""Quotas: how much of the broker a user, a client id or an address may take (S-QTA-1 to S-QTA-9).

* `rate`, `token_bucket`: what is measured, in Kafka's way. Pure; times are milliseconds.
* `entity`, `sanitizer`: whose quota it is, and how it is written; `keys`: what may be limited.
* `limits`: the quotas that are set for one key, and which of them holds for a client.
* `usages`: the rates of the clients that have a quota, in bounded number.
* `client_quota`, `mutation_quota`: one kind of quota: record, and say for how long to throttle.
* `charging`: all kinds together, and what a request owes when it is answered.
* `connection_rates`: how fast connections may be made.
* `quotas`: what the others hold; `throttle`: what connections know of all this.

Who asks: `broker.network` when a request is answered, the handlers of Fetch and of changes of
topics, and whoever accepts connections. Nothing here waits or knows a connection. As long as no
quota is set, `Quotas.charging` is None, and nobody asks more than that.
"""
