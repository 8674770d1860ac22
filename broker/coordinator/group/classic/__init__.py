"""Classic groups: Kafka's rebalance protocol as pure decisions (Kafka's `ClassicGroup`).

Each decision changes the soft state of one `ClassicGroup` (parked requests, running sessions) and
puts into a `GroupDecision` what to write, answer and time; it neither waits nor writes. Logged
state, the assignments of a stable generation, changes only in `replay`. The wall time comes from
`now_ms`, new member ids from `new_id`.

    Empty --join--> PreparingRebalance --all joined, or time is up--> CompletingRebalance
                     ^     |  nobody left                                  | leader synced,
                     |     v                                               v record written
                     |   Empty                                          Stable
                     +---- join of leader, changed or new member; leave; session expired ----+

From the bottom up

* Data. `state`: the states and the table of steps between them; `member`, `group`: the group and
  its members; `stored`: a group to its record, and back.
* Phases. `sessions`: heartbeats and session timers; `parked`: requests that wait in the group;
  `rebalance`: from the first join to the next generation.
* Requests. `joining`, `static_members`, `syncing`, `departures`: one each, upon the phases;
  `groups`: all of them, and the timers, as the shard sees them.

Rules (docs/developing/rules.md)

* S-GRP-1 The first rebalance of an empty group waits `group.initial.rebalance.delay.ms`, and again
  if a member joined meanwhile, up to the rebalance timeout. A later one waits until all members
  have rejoined, at most the largest rebalance timeout; then dynamic members that have not are
  removed, and static ones stay until their sessions expire.
* S-GRP-2 A new dynamic member (JoinGroup v4+) first gets an id, and has a session timeout to join
  with it. While such an id is pending a rebalance does not end early.
* S-GRP-3 A static member that joins without an id takes the place of its old id. In a stable group
  whose protocol stays the same this causes no rebalance.
* A parked request that the same member repeats on another connection is answered
  REBALANCE_IN_PROGRESS: Kafka leaves the old connection hanging.
"""
