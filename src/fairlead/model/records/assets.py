"""What workloads name and find in the server: secrets, config maps, claims, data volumes, and assets made of them.

Each belongs to a place: a project, everything below a department or the cluster, or one user alone. `control` makes
these records; a secret's values are in them only as ciphertext.
"""

from enum import StrEnum

import msgspec

from fairlead.model.clock import Millis

#: The scopes of the interface, widest first. `system` is what an installation brings along.
SCOPES = ("system", "tenant", "cluster", "department", "project")
DEFAULT_STORAGE_CLASS = "local"
#: The classes of storage that there are.
STORAGE_CLASSES = (DEFAULT_STORAGE_CLASS,)


class Reference(StrEnum):
    """The kinds of objects that a spec can name; the values are the words for them in messages."""

    SECRET = "secret"  # noqa: S105 - a kind of object
    CONFIG_MAP = "config map"
    CLAIM = "claim"
    DATA_VOLUME = "data volume"
    #: A secret that only its owner can use.
    USER_CREDENTIAL = "user credential"
    STORAGE_CLASS = "storage class"
    #: A credential asset, named by its id.
    CREDENTIAL = "credential"


class Scope(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far something reaches: everything below a part of the organization."""

    type: str
    #: Of the project, department or cluster; the tenant's number, or nothing, for the whole installation.
    id: str = ""

    @property
    def scope_key(self) -> str:
        """The one text by which records of this scope are found."""
        return INSTALLATION_SCOPE_KEY if self.type in ("system", "tenant") else f"{self.type}/{self.id}"


#: The place of what the whole installation can use.
INSTALLATION_SCOPE_KEY = "tenant"


def project_scope_key(project_id: str) -> str:
    return f"project/{project_id}"


def user_scope_key(name: str) -> str:
    """The place of what only this user (or service account) can use. A name stands for one account only."""
    return f"user/{name}"


class NamedRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What all of these records have."""

    id: str
    version: int
    name: str
    scope_key: str = msgspec.field(name="place")
    description: str = ""
    created_at: Millis = 0
    created_by: str = ""
    updated_at: Millis = 0
    updated_by: str = ""


class Secret(NamedRecord, frozen=True, kw_only=True, omit_defaults=True):
    """Named values that only workloads see. A user's credential is a secret in the user's own place."""

    #: `generic`, `docker-registry`, `access-key`, `password` or `ngc-api-key`.
    type: str = "generic"
    keys: tuple[str, ...] = ()
    #: The values as sealed by `control.vault`.
    sealed: str = ""
    #: The credential asset that it was made for, if any.
    asset_id: str = ""


class ConfigMap(NamedRecord, frozen=True, kw_only=True, omit_defaults=True):
    data: dict[str, str] = {}


class Claim(NamedRecord, frozen=True, kw_only=True, omit_defaults=True):
    """A volume that outlives workloads. Engines make the storage behind it; this says what it is to be."""

    project_id: str
    #: As written; empty where an asset names a claim that exists elsewhere.
    size: str = ""
    storage_class: str = DEFAULT_STORAGE_CLASS
    #: Of ReadWriteOnce, ReadOnlyMany, ReadWriteMany.
    access_modes: tuple[str, ...] = ("ReadWriteOnce",)
    volume_mode: str = "Filesystem"
    data_sharing: bool = False
    attributes: dict[str, str] = {}
    asset_id: str = ""
    #: The workload whose spec asked for it.
    workload_id: str = ""


class DataVolume(NamedRecord, frozen=True, kw_only=True, omit_defaults=True):
    """A claim's data, shared for reading with other projects."""

    project_id: str
    claim_name: str
    use_original: bool = True
    delete_original: bool = False
    shared: tuple[Scope, ...] = ()


class Asset(NamedRecord, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of a workload's spec under a name of its own. What it is, its kind's file in `control` says."""

    kind: str
    scope: Scope
    #: As sent, without any secret value.
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    auto_delete: bool = False
    private: bool = False
    supported: dict[str, bool | str | None] = {}
