"""What an operator lets pods do beyond what is harmless: the words of `--allow`, as data. Pure.

Each engine refuses what these words would lift and says which one does; `local` in shared mode, `kubernetes` always.
"""

from collections.abc import Sequence

import msgspec

from fairlead.model.errors import Invalid


class Allowed(msgspec.Struct, frozen=True, kw_only=True):
    """What is refused unless the server was started with the flag for it."""

    no_isolation: bool = False
    #: Folders below which host paths may be mounted; empty for none.
    host_paths: tuple[str, ...] = ()
    root_user: bool = False
    #: Whether pods may run under ids that this machine has given to somebody.
    machine_users: bool = False
    capabilities: tuple[str, ...] = ()
    #: By which protocols repositories may be fetched beside https and ssh.
    git_protocols: tuple[str, ...] = ()
    host_namespaces: bool = False
    #: Whether pods of a cluster may switch off the runtime's filters.
    unconfined: bool = False

    def has_path(self, path: str) -> bool:
        """Whether it is one of the folders, or lies below one."""
        plain = path.rstrip("/")
        return ".." not in path.split("/") and any(
            f"{plain}/".startswith(f"{folder.rstrip('/')}/") for folder in self.host_paths
        )

    def path_refusal(self, path: str) -> str:
        """Why that path is not to be had, and what would change it."""
        known = ", ".join(self.host_paths)
        allowed = f"allowed are {known}" if known else "none is allowed"
        return f"'{path}' lies below no allowed folder ({allowed}); start the server with --allow host-path={path}"


NOTHING_ALLOWED = Allowed()
_PLAIN = ("host-namespaces", "machine-users", "no-isolation", "root-user", "unconfined")
#: What can be allowed one by one, and what stands behind each.
_VALUED = {"host-path": "FOLDER", "capability": "NAME", "git-protocol": "NAME"}
#: All of them, for people.
ALLOWABLE = ", ".join([*_PLAIN, *(f"{key}={value}" for key, value in _VALUED.items())])


def parse_allowed(words: Sequence[str]) -> Allowed:
    """From the words: `no-isolation`, `host-path=FOLDER`, `capability=NAME` …; raises Invalid for unknown ones."""
    plain = {word for word in words if "=" not in word}
    valued = [(key, value) for key, equals, value in (word.partition("=") for word in words) if equals]
    unknown = [*(plain - set(_PLAIN)), *(key for key, value in valued if key not in _VALUED or not value)]
    if unknown:
        raise Invalid(f"'{min(unknown)}' cannot be allowed; known are {ALLOWABLE}")
    return Allowed(
        no_isolation="no-isolation" in plain,
        root_user="root-user" in plain,
        machine_users="machine-users" in plain,
        host_namespaces="host-namespaces" in plain,
        unconfined="unconfined" in plain,
        git_protocols=tuple(value for key, value in valued if key == "git-protocol"),
        host_paths=tuple(value for key, value in valued if key == "host-path"),
        capabilities=tuple(value for key, value in valued if key == "capability"),
    )
