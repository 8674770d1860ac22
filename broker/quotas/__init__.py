"""Quotas: how much of the broker a user, a client id or an address may take (S-QTA-1 to S-QTA-9).

* `rate`, `token_bucket`: the measurements, in Kafka's way. Pure; times are milliseconds.
* `entity`, `sanitizer`: the owner of a quota, and its written form; `keys`: Kafka's quota keys.
* `limits`: the quotas that are set for one key, and which of them holds for a client.
* `usages`: the rates of the clients that have a quota, in bounded number.
* `client_quota`, `mutation_quota`: one kind of quota: record, and return for how long to throttle.
* `charging`: all kinds together, and the charge of a request when it is answered.
* `connection_rates`: how fast connections may be made.
* `quotas`: the object that other rooms hold; `throttle`: the part that connections know.

The callers are `broker.network` when a request is answered and when a connection comes, and the
handlers of Fetch and of changes of topics. Nothing here waits or knows a connection. As long as no
quota is set, `Quotas.charging` is None, and the callers check nothing else.
"""
