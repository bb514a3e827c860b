"""Objects that workloads use by name: secrets, config maps, claims, data volumes; and assets.

Each belongs to a scope: a project, a department, the cluster, or one user. `control` writes these records; they hold
the values of secrets only as ciphertext.
"""

from enum import StrEnum

import msgspec

from fairlead.model.clock import Millis

#: The types of scopes, widest first. `system` is for what an installation ships with.
SCOPES = ("system", "tenant", "cluster", "department", "project")
DEFAULT_STORAGE_CLASS = "local"
#: All storage classes.
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
    """Where an object can be used: in one part of the organization and everything below it."""

    type: str
    #: The id of the project, department or cluster; the tenant's number or nothing for the whole installation.
    id: str = ""

    @property
    def scope_key(self) -> str:
        """The key by which the store finds records of this scope."""
        return INSTALLATION_SCOPE_KEY if self.type in ("system", "tenant") else f"{self.type}/{self.id}"


#: The scope key of what the whole installation can use.
INSTALLATION_SCOPE_KEY = "tenant"


def project_scope_key(project_id: str) -> str:
    return f"project/{project_id}"


def user_scope_key(name: str) -> str:
    """The scope key of what only this user or service account can use. Names of accounts are unique."""
    return f"user/{name}"


class NamedRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The members that all of these records have."""

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
    """Named values that only workloads can read. A user credential is a secret in the scope of its user."""

    #: `generic`, `docker-registry`, `access-key`, `password` or `ngc-api-key`.
    type: str = "generic"
    keys: tuple[str, ...] = ()
    #: The values as sealed by `control.vault`.
    sealed: str = ""
    #: The credential asset that it was created for, if any.
    asset_id: str = ""


class ConfigMap(NamedRecord, frozen=True, kw_only=True, omit_defaults=True):
    data: dict[str, str] = {}


class Claim(NamedRecord, frozen=True, kw_only=True, omit_defaults=True):
    """A volume that outlives workloads. This is its desired state; engines provide the storage."""

    project_id: str
    #: As written; empty if an asset names a claim that exists elsewhere.
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
    """The data of a claim, shared read-only with other projects."""

    project_id: str
    claim_name: str
    use_original: bool = True
    delete_original: bool = False
    shared: tuple[Scope, ...] = ()


class Asset(NamedRecord, frozen=True, kw_only=True, omit_defaults=True):
    """A named part of a workload's spec. `control/assets/kinds.py` declares what each kind of asset holds."""

    kind: str
    scope: Scope
    #: As sent, without any secret value.
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    auto_delete: bool = False
    private: bool = False
    supported: dict[str, bool | str | None] = {}
