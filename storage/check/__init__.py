"""Finds what is wrong with a log directory, shows what a restart would do about it, or does it now.

    inspect    reads everything and reports what is wrong (`Finding`), whatever a restart would see
    rehearsal  a file system in which changes are made in memory only
    plan       runs the recovery of a start itself (`storage.recovery`) in a rehearsal: its changes
               there are those that a restart would make (`Action`)
    repair     the same run on the disk, after a backup of everything it is going to cut

So the decisions of recovery exist once. `tools.fsck` shows all this; `storage.explain` opens logs
in a rehearsal.
"""
