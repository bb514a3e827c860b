"""From what the operator wrote (flags, a file of nodes) to the settings of the local engine. Called by `app` alone."""

import os
import pwd
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from fairlead.engines.local.nodes import observe_machine, parse_node, parse_nodes
from fairlead.engines.local.plan.container import HOST, RUNTIMES
from fairlead.engines.local.plan.environment import PATH
from fairlead.engines.local.plan.identity import load_account
from fairlead.engines.local.plan.volumes import TEMPORARY
from fairlead.engines.local.settings import NOBODY, Identity, LocalSettings
from fairlead.model.allowed import parse_allowed
from fairlead.model.clock import Clock
from fairlead.model.errors import Invalid
from fairlead.model.records.organization import Node


class LocalOptions(Protocol):
    """The settings of the application that this engine reads."""

    @property
    def data_dir(self) -> Path: ...
    @property
    def host(self) -> str: ...
    @property
    def personal(self) -> bool: ...
    @property
    def nodes(self) -> tuple[str, ...]: ...
    @property
    def nodes_file(self) -> str: ...
    @property
    def allow(self) -> tuple[str, ...]: ...
    @property
    def runtimes(self) -> tuple[str, ...]: ...
    @property
    def runtime_options(self) -> tuple[str, ...]: ...
    @property
    def runtime_environment(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def pids_limit(self) -> int | None: ...


def load_settings(written: LocalOptions, clock: Clock) -> LocalSettings:
    """Raises Invalid for a declaration that cannot be read."""
    myself = load_identity(os.geteuid())
    # Without root a shared server can only run pods as itself, each in a view of its own.
    ids = NOBODY if os.geteuid() == 0 else myself
    allowed = parse_allowed(written.allow)
    # Only an isolated pod has a home that is made for it.
    home = TEMPORARY if allowed.no_isolation else NOBODY.home
    other = Identity(uid=ids.uid, gid=ids.gid, login=NOBODY.login, home=home)
    runtimes = parse_runtimes(written.runtimes)
    return LocalSettings(
        data_dir=str(written.data_dir),
        owner=myself if written.personal else None,
        run_as=other,
        nodes=_declared(written, observe_machine(clock())),
        allowed=allowed,
        runtimes=tuple(runtimes),
        runtime_programs=tuple(runtimes.items()),
        runtime_options=written.runtime_options,
        runtime_environment=written.runtime_environment,
        pids_limit=written.pids_limit,
        service_address=written.host,
    )


def _declared(written: LocalOptions, machine: Node) -> tuple[Node, ...]:
    nodes = [parse_node(text, machine) for text in written.nodes]
    if written.nodes_file:
        try:
            nodes += parse_nodes(Path(written.nodes_file).read_text(encoding="utf-8"), machine)
        except OSError as error:
            raise Invalid(f"cannot read the nodes file '{written.nodes_file}': {error.strerror}") from error
    names = [node.name for node in nodes]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise Invalid(f"node '{min(twice)}' is declared twice; node names must be unique")
    return tuple(nodes) or (machine,)


def load_identity(uid: int) -> Identity:
    """A user as this machine knows them; one without an entry or a home lives in the root folder."""
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return Identity(uid=uid, gid=os.getegid(), login=str(uid), home="/")
    return load_account(entry)


#: Of the server's own variables, those by which an operator sets up a container runtime's command.
_RUNTIME_VARIABLES = re.compile(
    r"CONTAINERS_(CONF|REGISTRIES_CONF|STORAGE_CONF)|REGISTRY_AUTH_FILE|XDG_RUNTIME_DIR|SSL_CERT_(FILE|DIR)"
    r"|DOCKER_(HOST|CONFIG|CONTEXT|CERT_PATH|TLS_VERIFY)|CONTAINERD_(ADDRESS|NAMESPACE)"
    r"|(HTTP|HTTPS|NO|http|https|no)_(PROXY|proxy)"
)


def pick_runtime_variables(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """What of the server's environment a container runtime's command is given."""
    return tuple(sorted((name, value) for name, value in environment.items() if _RUNTIME_VARIABLES.fullmatch(name)))


def parse_runtimes(written: Sequence[str]) -> dict[str, str]:
    """From the runtimes that may be chosen here (NAME or NAME=PROGRAM) to programs; raises Invalid for unknown ones."""
    programs: dict[str, str] = {}
    for text in written:
        name, _, given = text.partition("=")
        if name == HOST and not given:
            programs[name] = ""
            continue
        if name not in RUNTIMES:
            raise Invalid(f"'{name}' is not a runtime; known are {', '.join([HOST, *RUNTIMES])}")
        if given and not given.startswith("/"):
            raise Invalid(f"the program of runtime '{name}' is '{given}'; give its absolute path")
        program = given or RUNTIMES[name].program
        if shutil.which(program, path=PATH) is None:
            raise Invalid(f"runtime '{name}' needs the program {program}, which is not installed here")
        programs[name] = program
    return programs or {HOST: ""}
