"""Prints rules and explanations: as tables, or as a JSON document."""

from collections.abc import Sequence
from typing import Any, Final

from protocol.acls.index import Ground
from protocol.acls.rules import Rule
from protocol.acls.vocabulary import PermissionType, ResourceType
from tools.acls.explanation import Explanation
from tools.acls.words import Action, plain
from tools.json_output import print_document
from tools.tables import Cell, Coloured, print_table

_COLUMNS: Final = ("resource", "name", "pattern", "permission", "principal", "operation", "host")
_GROUNDS: Final = {
    Ground.SUPER_USER: "a super user: no rule is asked",
    Ground.DEFAULT_ALLOW: "no rule is about it, and allow.everyone.if.no.acl.found is set",
    Ground.DEFAULT_DENY: "no rule allows it",
}
_NOT_TOLD: Final = "The broker does not tell its settings: super users may do everything."


def show_rules(rules: Sequence[Rule], *, as_json: bool, nothing: str) -> None:
    """Print a line for each rule, or the text `nothing` if there is none."""
    if as_json:
        print_document([_object(rule) for rule in rules])
    elif rules:
        print_table(_COLUMNS, map(_cells, rules))
    else:
        print(nothing)


def show_explanation(action: Action, told: Explanation, *, as_json: bool) -> None:
    """Print the decision, and what each rule about the resource has to do with it."""
    decision = told.decision
    because = decision.because
    if as_json:
        print_document(
            {
                "allowed": decision.allowed,
                "because": _object(because) if isinstance(because, Rule) else because.value,
                "sure": told.sure,
                "rules": [{**_object(rule), "verdict": verdict} for rule, verdict in told.verdicts],
            }
        )
        return
    may = "may" if decision.allowed else "may not"
    resource = plain(action.resource_type)
    if action.resource_type is not ResourceType.CLUSTER:
        resource += f" {action.name}"
    print(f"{action.principal} from {action.host} {may} {plain(action.operation)} {resource}")
    if isinstance(because, Ground):
        print(_GROUNDS[because])
    if not told.sure:
        print(_NOT_TOLD)
    if told.verdicts:
        print()
        rows = ((str(verdict), *_cells(rule)) for rule, verdict in told.verdicts)
        print_table(("verdict", *_COLUMNS), rows)


def _cells(rule: Rule) -> tuple[Cell, ...]:
    allows = rule.permission_type is PermissionType.ALLOW
    return (
        plain(rule.resource_type),
        rule.resource_name,
        plain(rule.pattern_type),
        Coloured("allow", "") if allows else Coloured("deny", "red"),
        rule.principal,
        plain(rule.operation),
        rule.host,
    )


def _object(rule: Rule) -> dict[str, Any]:
    return {
        "resource_type": rule.resource_type.name,
        "resource_name": rule.resource_name,
        "pattern_type": rule.pattern_type.name,
        "principal": rule.principal,
        "host": rule.host,
        "operation": rule.operation.name,
        "permission_type": rule.permission_type.name,
    }
