"""Classic groups: Kafka's rebalance protocol as pure decisions (Kafka's `ClassicGroup`).

Each decision changes one `Group` and says in an `Outcome` what is to be written, answered and
timed; it neither waits nor writes. The wall time comes in as `now_ms`, new ids from `new_id`.

    Empty --join--> PreparingRebalance --all joined, or time is up--> CompletingRebalance
                     ^     |  nobody left                                  | leader synced,
                     |     v                                               v record written
                     |   Empty                                          Stable
                     +---- join of leader, changed or new member; leave; session expired ----+

From the bottom up

* `state`: the states and the table of steps between them; `member`, `group`: the data.
* `sessions`: heartbeats and session timers; `parked`: requests that wait in the group.
* `rebalance`: the phases, from the first join to the next generation.
* `joining`, `static_members`, `syncing`, `departures`: one request each, upon the phases.
* `stored`: a group as the record of it, and back.

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
