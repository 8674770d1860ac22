"""KRaft's control records in metadata logs and their snapshots, for printing only.

This broker takes no part in KRaft's elections. Field names are those of Kafka's message definitions
(`LeaderChangeMessage.json` and others), so that the JSON is that of Kafka's tool.
"""

from typing import Final

from protocol.records.control import ControlType
from protocol.schema import Api, Array, Group, Int16, Int32, Int64, Str, UInt16, Uuid, V

# fmt: off

Voter = Group(
    "Voter",
    "voter_id"           / V("0+", Int32),
    "voter_directory_id" / V("1+", Uuid),
)

# v1 names the directory of each voter.
LeaderChange = Api(
    None, "LeaderChangeMessage", "0-1", "0+",
    "version"         / V("0+", Int16),
    "leader_id"       / V("0+", Int32),
    "voters"          / V("0+", Array(Voter)),
    "granting_voters" / V("0+", Array(Voter)),
)

SnapshotHeader = Api(
    None, "SnapshotHeaderRecord", "0", "0+",
    "version"                      / V("0+", Int16),
    "last_contained_log_timestamp" / V("0+", Int64),
)

SnapshotFooter = Api(
    None, "SnapshotFooterRecord", "0", "0+",
    "version" / V("0+", Int16),
)

KRaftVersion = Api(
    None, "KRaftVersionRecord", "0", "0+",
    "version"         / V("0+", Int16),
    "k_raft_version"  / V("0+", Int16),
)

Endpoint = Group(
    "Endpoint",
    "name" / V("0+", Str),
    "host" / V("0+", Str),
    "port" / V("0+", UInt16),
)

VersionFeature = Group(
    "KRaftVersionFeature",
    "min_supported_version" / V("0+", Int16),
    "max_supported_version" / V("0+", Int16),
)

RegisteredVoter = Group(
    "Voter",
    "voter_id"                / V("0+", Int32),
    "voter_directory_id"      / V("0+", Uuid),
    "endpoints"               / V("0+", Array(Endpoint)),
    "k_raft_version_feature"  / V("0+", VersionFeature),
)

Voters = Api(
    None, "VotersRecord", "0", "0+",
    "version" / V("0+", Int16),
    "voters"  / V("0+", Array(RegisteredVoter)),
)

# fmt: on

KRAFT_RECORDS: Final[dict[ControlType, tuple[str, str, Api]]] = {
    ControlType.LEADER_CHANGE: ("LeaderChange", ": ", LeaderChange),
    ControlType.SNAPSHOT_HEADER: ("SnapshotHeader", " ", SnapshotHeader),
    ControlType.SNAPSHOT_FOOTER: ("SnapshotFooter", " ", SnapshotFooter),
    ControlType.KRAFT_VERSION: ("KRaftVersion", " ", KRaftVersion),
    ControlType.KRAFT_VOTERS: ("KRaftVoters", " ", Voters),
}
"""By type: Kafka's name of the record, the separator that Kafka prints after it, and the fields."""
