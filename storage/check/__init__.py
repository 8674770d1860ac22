"""What is wrong with a log directory, what a restart would do about it, and doing it now.

    inspect    reads everything and tells what is wrong (`Finding`), whatever a restart would see
    rehearsal  a file system in which changes are made in memory only
    plan       runs the very recovery of a start (`storage.recovery`) in a rehearsal: what it has
               changed there is what a restart would change (`Action`)
    repair     the same run on the disk, after what it is going to cut was copied away

So the decisions of recovery exist once. `tools.fsck` shows all this; nothing else calls it.
"""
