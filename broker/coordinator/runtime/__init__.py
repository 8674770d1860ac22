"""What every coordinator is built on: its partitions, the one way to write, and loading.

    decide (pure)        a method of the shard fills a `Decision`: records, answers, timers
    carry out            timers are set, answers given, the records noted as in flight
    append               one batch; tombstones, which may be very many, in several
    replay               when the batch is durable: `Shard.replay`, the only thing that changes what
                         the log says; loading a partition calls the very same
    answer               the request hears NONE, or why the write failed
    follow up            the shard may decide again, now that it knows how the write ended

Nothing that is not durable has changed the shard, so a write that fails is undone by nobody: the
runtime drops the marks of its records (`InFlight`), and who asks that table finds them gone. After
Kafka's `CoordinatorResult`, `CoordinatorShard` and `CoordinatorRuntime`.

* `decision`: what a shard decides. `shard`: a shard as the runtime sees it. `in_flight`: which
  records are on their way.
* `writing`: the path above. `timers`: renewed far more often than they fire. `loading`: a log into
  a new shard. `runtime`: which partitions are served, and all that a coordinator sees of the rest.
"""
