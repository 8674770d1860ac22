"""Classic groups: Kafka's rebalance protocol as pure decisions (Kafka's `ClassicGroup`).

Each decision changes the soft state of one `ClassicGroup` (who waits, whose session runs) and says
in an `Outcome` what is to be written, answered and timed; it neither waits nor writes. What the log
says of a group, the assignments of a stable generation, changes in `replay` alone. The wall time
comes in as `now_ms`, new ids from `new_id`.

    Empty --join--> PreparingRebalance --all joined, or time is up--> CompletingRebalance
                     ^     |  nobody left                                  | leader synced,
                     |     v                                               v record written
                     |   Empty                                          Stable
                     +---- join of leader, changed or new member; leave; session expired ----+

From the bottom up

* Data. `state`: the states and the table of steps between them; `member`, `group`: the group, and
  what is asked of a group of any kind; `stored`: a group as the record of it, and back.
* Phases. `sessions`: heartbeats and session timers; `parked`: requests that wait in the group;
  `rebalance`: from the first join to the next generation.
* Requests. `joining`, `static_members`, `syncing`, `departures`: one each, upon the phases;
  `groups`: all of them, and the timers, as the shard sees them.

Rules (docs/rules.md)

* S-GRP-1 The first rebalance of an empty group waits `group.initial.rebalance.delay.ms`, again
  for each join that came meanwhile, up to the rebalance timeout. A later one waits until all
  members rejoined, at most the largest rebalance timeout; dynamic members that did not come are
  out, static ones stay until their session expires.
* S-GRP-2 A dynamic newcomer (JoinGroup v4+) first gets an id and has a session timeout to come
  back with it. While such a one is pending a rebalance does not end early.
* S-GRP-3 A static member that comes back without id takes over the old id's place. In a stable
  group whose protocol stays the same nobody else notices.
* A parked request that the same member repeats on another connection is answered
  REBALANCE_IN_PROGRESS: Kafka leaves the old connection hanging.
"""
