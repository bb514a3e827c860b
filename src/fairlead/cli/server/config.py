"""`config`: shows and changes the configuration file of the command line."""

import os

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import OUTPUT, UsageError
from fairlead.cli.session.settings import KEYS, config_path, load_settings, record_setting
from fairlead.cli.terminal.console import Console
from fairlead.cli.terminal.output import Listing, chosen_format
from fairlead.cli.terminal.tables import TableColumn
from fairlead.client.access.tls import make_context
from fairlead.client.access.urls import Trust, read_address
from fairlead.client.suggest import suggest


def commands(_noun: str) -> tuple[Command, ...]:
    keys = "Keys:\n" + "\n".join(f"  {key:<8}  {text}" for key, text in KEYS.items())
    return (
        Command("list", "Show all values", _list, OUTPUT, aliases=("view", "show")),
        Command("get", "Show one value", _get, usage="KEY", min_names=1, max_names=1, details=keys, completes="key"),
        Command("set", "Set a value", _set, usage="KEY VALUE", min_names=2, max_names=2, details=keys, completes="key"),
        Command(
            "unset", "Remove a value", _unset, usage="KEY", min_names=1, max_names=1, details=keys, completes="key"
        ),
        Command("path", "Show the path of the configuration file", _path),
    )


def _list(invocation: Invocation) -> int:
    settings = load_settings(invocation)
    console = Console(invocation)
    form = chosen_format(invocation, {})
    rows = [{"key": key, "value": settings.get(key), "about": KEYS.get(key, "")} for key in {**KEYS, **settings}]
    columns = (
        TableColumn("KEY", lambda row: row["key"]),
        TableColumn("VALUE", lambda row: "" if row["value"] is None else str(row["value"]), shrinks=True),
        TableColumn("ABOUT", lambda row: row["about"], shrinks=True),
    )
    listing = Listing(columns, lambda row: str(row["key"]), "There is nothing to configure.")
    listing.show(console, form, rows, not invocation.get("no-headers"))
    return OK


def _get(invocation: Invocation) -> int:
    value = load_settings(invocation).get(_key(invocation))
    if value is not None:
        Console(invocation).data(str(value))
    return OK


def _set(invocation: Invocation) -> int:
    key, value = _key(invocation), invocation.names[1]
    if key == "ca-file":
        # Later commands are called in other folders.
        value = os.path.join(invocation.environment.folder, value)
    _check(key, value)
    record_setting(invocation, key, value)
    Console(invocation).say(f"{key} is now {value}.")
    return OK


def _check(key: str, value: str) -> None:
    """Refuse a value that no command could use."""
    if key == "url":
        if "://" not in value:
            raise UsageError(f"url must be an address such as https://lab.example:7420, not '{value}'.")
        read_address(value)
    if key == "ca-file":
        make_context(Trust(value))
    formats = OUTPUT[0].choices
    if key == "output" and value not in formats:
        raise UsageError(f"output must be one of {', '.join(formats)}, not '{value}'.{suggest(value, formats)}")


def _unset(invocation: Invocation) -> int:
    record_setting(invocation, _key(invocation), None)
    return OK


def _path(invocation: Invocation) -> int:
    Console(invocation).data(config_path(invocation))
    return OK


def _key(invocation: Invocation) -> str:
    key = invocation.names[0]
    if key not in KEYS:
        raise UsageError(f"There is no key '{key}'; the keys are {', '.join(KEYS)}.{suggest(key, KEYS)}")
    return key
