"""The index of access rules against a list of them: the same decision, and the same rule."""

from hypothesis import given
from hypothesis import strategies as st

from protocol.acls.filters import RuleFilter
from protocol.acls.index import RuleIndex
from protocol.acls.rules import Rule
from protocol.acls.vocabulary import Operation, PatternType, PermissionType, ResourceType
from tests.support.access_rules import (
    HOSTS,
    NAMES,
    OPERATIONS,
    PRINCIPALS,
    TYPES,
    actions,
    covers,
    decide_any_naively,
    decide_naively,
    rules,
)

rule_sets = st.lists(rules, max_size=30, unique=True)


@given(rule_sets, st.lists(actions, max_size=20), st.booleans())
def test_s_acl_2_the_index_decides_as_a_list_read_from_end_to_end(
    some: list[Rule],
    asked: list[tuple[str, str, Operation, ResourceType, str]],
    allow_if_none: bool,
) -> None:
    index = RuleIndex(some, allow_if_none=allow_if_none)
    for action in asked:
        assert index.decide(*action) == decide_naively(some, *action, allow_if_none=allow_if_none)


@given(
    rule_sets,
    st.sampled_from(PRINCIPALS),
    st.sampled_from(HOSTS),
    st.sampled_from(OPERATIONS[1:]),
    st.sampled_from(TYPES),
)
def test_s_acl_5_any_resource_of_a_type(
    some: list[Rule], principal: str, host: str, operation: Operation, kind: ResourceType
) -> None:
    found = RuleIndex(some).decide_any(principal, host, operation, kind)
    assert found.allowed == decide_any_naively(some, principal, host, operation, kind)


@given(rule_sets, rule_sets, st.lists(actions, min_size=1, max_size=5))
def test_what_was_removed_has_left_nothing_behind(
    stay: list[Rule],
    go: list[Rule],
    asked: list[tuple[str, str, Operation, ResourceType, str]],
) -> None:
    index = RuleIndex(go)
    for rule in stay:
        assert index.add(rule) == (rule not in go)
    for action in asked:
        index.decide(*action)  # its memory of hosts must not outlive the rules
    for rule in go:
        assert index.remove(rule)
        assert not index.remove(rule)
        assert rule not in index
    left = [rule for rule in stay if rule not in go]
    assert len(index) == len(left)
    assert sorted(one for p in index.patterns() for one in index.rules_of(p)) == sorted(left)
    for action in asked:
        assert index.decide(*action) == decide_naively(left, *action)
    for rule in left:
        assert index.remove(rule)
    assert vars(index)["_patterns"] == vars(index)["_clients"] == {}
    assert not any(vars(index)["_prefix_lengths"].values())


@given(
    rules,
    st.sampled_from((*TYPES, ResourceType.ANY)),
    st.sampled_from((*NAMES, "*", None)),
    st.sampled_from([one for one in PatternType if one]),
    st.sampled_from((*PRINCIPALS, "User:*", None)),
    st.sampled_from((*HOSTS, "*", None)),
    st.sampled_from([one for one in Operation if one]),
    st.sampled_from([one for one in PermissionType if one]),
)
def test_s_acl_6_a_filter_selects_what_each_of_its_fields_fits(
    rule: Rule,
    kind: ResourceType,
    name: str | None,
    pattern: PatternType,
    principal: str | None,
    host: str | None,
    operation: Operation,
    permission: PermissionType,
) -> None:
    if pattern is PatternType.MATCH and name is not None:
        named = covers(rule, rule.resource_type, name)
    elif pattern in (PatternType.ANY, PatternType.MATCH, rule.pattern_type):
        named = name in (None, rule.resource_name)
    else:
        named = False
    expected = (
        named
        and kind in (ResourceType.ANY, rule.resource_type)
        and principal in (None, rule.principal)
        and host in (None, rule.host)
        and operation in (Operation.ANY, rule.operation)
        and permission in (PermissionType.ANY, rule.permission_type)
    )
    chosen = RuleFilter(kind, name, pattern, principal, host, operation, permission)
    assert chosen.fits(rule) == expected
    if chosen.only_pattern is not None and expected:
        assert chosen.only_pattern == rule.pattern
