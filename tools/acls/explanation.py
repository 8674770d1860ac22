"""Explains which rule decides one action, and why the resource's other rules do not decide it.

Pure; the decision is the broker's own code (`protocol.acls.index`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from protocol.acls.hosts import HostPatterns
from protocol.acls.index import Decision, Ground, RuleIndex
from protocol.acls.rules import WILDCARD_PRINCIPAL, Rule
from protocol.acls.vocabulary import PermissionType
from tools.acls.rules import Defaults
from tools.acls.words import Action


class Verdict(StrEnum):
    """The part of a rule in the decision."""

    DECIDES = "decides"
    AGREES = "says the same"
    OUTWEIGHED = "outweighed"
    OTHER_OPERATION = "other operation"
    OTHER_HOST = "other host"
    OTHER_PRINCIPAL = "other principal"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The decision, and the verdict on each rule about the resource; the one that decides first."""

    decision: Decision
    verdicts: tuple[tuple[Rule, Verdict], ...]
    sure: bool
    """False if the broker does not show its settings, and they could turn the decision."""


def explain(rules: Iterable[Rule], action: Action, defaults: Defaults) -> Explanation:
    """Decide, by all `rules` about the resource of an action."""
    known = sorted(set(rules))
    if defaults.super_users is not None and action.principal in defaults.super_users:
        decision = Decision(True, Ground.SUPER_USER)
    else:
        decision = _decide(known, action, allow_if_none=bool(defaults.allow_if_none))
    verdicts = [(rule, _verdict(rule, action, decision)) for rule in known]
    order = list(Verdict)
    verdicts.sort(key=lambda one: order.index(one[1]))
    unknown = defaults.super_users is None or (defaults.allow_if_none is None and not known)
    return Explanation(decision, tuple(verdicts), decision.allowed or not unknown)


def _decide(rules: Iterable[Rule], action: Action, *, allow_if_none: bool = False) -> Decision:
    return RuleIndex(rules, allow_if_none=allow_if_none).decide(
        action.principal, action.host, action.operation, action.resource_type, action.name
    )


def _verdict(rule: Rule, action: Action, decision: Decision) -> Verdict:
    if rule == decision.because:
        return Verdict.DECIDES
    if rule.principal not in (action.principal, WILDCARD_PRINCIPAL):
        return Verdict.OTHER_PRINCIPAL
    if not _is_from(rule.host, action.host):
        return Verdict.OTHER_HOST
    if _decide([rule], action).because != rule:
        return Verdict.OTHER_OPERATION
    allows = rule.permission_type is PermissionType.ALLOW
    return Verdict.AGREES if allows is decision.allowed else Verdict.OUTWEIGHED


def _is_from(pattern: str, host: str) -> bool:
    patterns = HostPatterns()
    patterns.add(pattern)
    return pattern in patterns.matching(host)
