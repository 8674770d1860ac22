"""Prints settings: as a table, explained one by one, or as a JSON document."""

from collections.abc import Sequence
from typing import Any

from tools.configs.settings import Setting
from tools.errors import CommandError
from tools.json_output import print_document
from tools.tables import print_table

HIDDEN = "(hidden)"


def show_settings(chosen: Sequence[Setting], *, as_json: bool, nothing: str) -> None:
    """Print a line for each setting, or the text `nothing` if there is none."""
    if as_json:
        print_document([_object(each) for each in chosen])
    elif not chosen:
        print(nothing)
    else:
        print_table(
            ("setting", "value", "from", "effect"),
            ((each.name, _value(each), each.source.words, _effect(each)) for each in chosen),
        )


def show_levels(loggers: Sequence[Setting], *, as_json: bool) -> None:
    """Print the level of each logger."""
    if as_json:
        print_document({each.name: each.value for each in loggers})
    else:
        print_table(("logger", "level"), ((each.name, each.value) for each in loggers))


def explain(found: Sequence[Setting], names: Sequence[str], *, as_json: bool) -> None:
    """Print everything about the named settings. Raises CommandError for an unknown name."""
    by_name = {each.name: each for each in found}
    for name in names:
        if name not in by_name:
            raise CommandError(f"there is no setting {name} here; --all lists what there is")
    if as_json:
        print_document([_object(by_name[name]) for name in names])
        return
    for each in (by_name[name] for name in names):
        print(f"{each.name}={_value(each)}")
        if each.documentation:
            print(f"  {each.documentation}")
        print("  can be changed while the broker runs" if not each.read_only else "  read-only")
        for where, name, value in each.places:
            shown = HIDDEN if each.sensitive else value
            print(f"  {where}: {name}={shown}")


def _value(each: Setting) -> str:
    if each.sensitive:
        return HIDDEN
    return "(not set)" if each.value is None else each.value


def _effect(each: Setting) -> str | None:
    return "none" if each.without_effect else None


def _object(each: Setting) -> dict[str, Any]:
    return {
        "name": each.name,
        "value": each.value,
        "source": each.source.name.lower(),
        "default": each.default,
        "changed": each.changed,
        "no_effect": each.without_effect,
        "read_only": each.read_only,
        "sensitive": each.sensitive,
        "documentation": each.documentation,
        "set_by": [
            {"where": where, "name": name, "value": value} for where, name, value in each.places
        ],
    }
