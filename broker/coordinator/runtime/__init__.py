"""The base of every coordinator: its partitions, the only way to write, and loading.

    decide (pure)        a method of the shard fills a `Decision`: records, answers, timers
    carry out            set timers, give answers, note the records as in flight
    append               one batch; tombstones, which may be very many, in several
    replay               when the batch is durable: `Shard.replay`, the only method that changes
                         logged state; loading a partition calls the same
    end                  the request gets NONE, or why the write failed (`Write.ended`)
    follow up            carry out the decision of the write's `then`, which gets the same code

Only durable records change the shard, so a failed write has nothing to undo: the runtime removes
its records from the `InFlight` table (decision 74). After Kafka's `CoordinatorResult`,
`CoordinatorShard` and `CoordinatorRuntime`.

* `decision`: a shard's decision. `shard`: a shard as the runtime sees it. `in_flight`: records
  that are appended and not durable yet.
* `writing`: the path above. `hooks`: the parts of each coordinator. `timers`: renewed far
  more often than they fire. `loading`: replays a log into a new shard. `runtime`: the life of a
  coordinator, and which partitions are served.
"""
