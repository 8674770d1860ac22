import pytest

from config.zookeeper_connect import parse_connect


@pytest.mark.parametrize(
    ("text", "servers", "chroot"),
    [
        ("a", [("a", 2181)], ""),
        ("a:1", [("a", 1)], ""),
        ("a:", [("a", 2181)], ""),
        (" a:1 , b ", [("a", 1), ("b", 2181)], ""),
        ("a:1,,b:2,", [("a", 1), ("b", 2)], ""),
        ("a:1/", [("a", 1)], ""),
        ("a:1,b/kafka/x", [("a", 1), ("b", 2181)], "/kafka/x"),
        ("[::1]:3,[fe80::1]/k", [("::1", 3), ("fe80::1", 2181)], "/k"),
    ],
)
def test_servers_and_the_path_below_which_the_cluster_lives(
    text: str, servers: list[tuple[str, int]], chroot: str
) -> None:
    address = parse_connect(text)
    assert address.servers == tuple(servers)
    assert address.chroot == chroot
    assert parse_connect(str(address)) == address


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "names no server"),
        ("/kafka", "names no server"),
        (",", "names no server"),
        ("a:x", "x in a:x is no port"),
        ("a:0", "is no port"),
        ("a:65536", "is no port"),
        ("a:-1", "is no port"),
        (":2181", "names no host"),
        ("::1", "brackets"),
        ("[::1", "no address"),
        ("[::1]2181", "no address"),
        ("a/kafka/", "must not end with a /"),
        ("a//kafka", "empty name"),
        ("a/k//x", "empty name"),
        ("a/../x", "has .. in it"),
        ("a/./x", "has . in it"),
        ("a/k\x01", "does not take"),
    ],
)
def test_what_is_malformed_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason.replace(".", r"\.")):
        parse_connect(text)
