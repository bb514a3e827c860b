"""The table of the kinds of assets: name, spec, and for credentials the secret that they create.

`assets.py` uses it for the use cases, the API for its routes.
"""

import base64
import json
import re
from collections.abc import Callable
from typing import Any

import msgspec

from fairlead.model.errors import ComplianceIssue
from fairlead.model.records.assets import Reference
from fairlead.model.spec import assets as specs
from fairlead.model.spec.fields import Field, Spec, fields_of, value_or

#: The key of a registry's credentials in a secret, as in Kubernetes.
REGISTRY_KEY = ".dockerconfigjson"
_NGC = re.compile(r"[-._A-Za-z0-9]+\Z")


#: By kind, the type of resource in roles.
_RESOURCES = {
    "environment": "environments",
    "compute": "compute-resources",
    "git": "git-assets",
    "hostPath": "host-path-assets",
    "nfs": "nfs-assets",
    "pvc": "pvc-assets",
    "s3": "s3-assets",
    "config-map": "cm-volume-assets",
    "secret-volume": "secret-volume-assets",
}


class AssetKind(msgspec.Struct, frozen=True, kw_only=True):
    #: Below `/api/v1/asset/`.
    path: str
    #: The contract's word for it in an asset's meta.
    kind: str
    #: Its name in messages.
    title: str
    spec: type[Spec]
    #: Its member in the list of all data sources or of all credentials.
    member: str = ""
    #: For credentials: the prefix of the secret's name, its type, and its values from the spec.
    prefix: str = ""
    secret_type: str = ""
    values: Callable[[Any], dict[str, str]] | None = None
    #: Whether the contract answers a deletion with 204 instead of 202.
    is_deleted_at_once: bool = False

    @property
    def credential_fields(self) -> tuple[Field, ...]:
        """The members that name a credential by its id."""
        return tuple(field for field in fields_of(self.spec) if field.about.refers is Reference.CREDENTIAL)

    @property
    def is_credential(self) -> bool:
        return self.values is not None

    @property
    def resource(self) -> str:
        """Its type of resource in roles."""
        return "credentials" if self.is_credential else _RESOURCES[self.kind]


def _given_texts(**members: object) -> dict[str, str]:
    return {name: value for name, value in members.items() if isinstance(value, str)}


def _access_key(spec: specs.AccessKeyCredential) -> dict[str, str]:
    return _given_texts(AccessKeyId=spec.access_key_id, SecretKey=spec.secret_access_key)


def _password(spec: specs.PasswordCredential) -> dict[str, str]:
    return _given_texts(User=spec.user, Password=spec.password)


def _docker_registry(spec: specs.DockerRegistryCredential) -> dict[str, str]:
    """The credentials of a registry as Kubernetes and container runtimes read them."""
    user, password, url = (value_or(value, "") for value in (spec.user, spec.password, spec.url))
    if not password:
        return {}
    entry = {"username": user, "password": password, "auth": base64.b64encode(f"{user}:{password}".encode()).decode()}
    return {REGISTRY_KEY: json.dumps({"auths": {url: entry}})}


def _generic(spec: specs.GenericSecretCredential) -> dict[str, str]:
    return {value_or(pair.key, ""): value_or(pair.value, "") for pair in value_or(spec.key_value_pairs, ())}


def _ngc(spec: specs.NgcCredential) -> dict[str, str]:
    return {"NGC_API_KEY": spec.ngc_api_key}


#: REST names and attributes of the members that a credential without an existing secret must have.
_MANDATORY: dict[type[Spec], dict[str, str]] = {
    specs.AccessKeyCredential: {"accessKeyId": "access_key_id", "secretAccessKey": "secret_access_key"},
    specs.PasswordCredential: {"user": "user", "password": "password"},
    specs.DockerRegistryCredential: {"user": "user", "password": "password", "url": "url"},
    specs.GenericSecretCredential: {"keyValuePairs": "key_value_pairs"},
}


def credential_issues(kind: AssetKind, spec: msgspec.Struct) -> list[ComplianceIssue]:
    """The issues of a new credential. They never repeat its values."""
    if isinstance(value_or(getattr(spec, "existing_secret_name", None), None), str):
        return []
    if isinstance(spec, specs.NgcCredential):
        ok = _NGC.match(spec.ngc_api_key) is not None
        return (
            [] if ok else [ComplianceIssue("spec.ngc_api_key", "has characters other than letters, digits and '-._'")]
        )
    needed = _MANDATORY[kind.spec]
    return [
        ComplianceIssue(f"spec.{rest}", "is missing; give it or existingSecretName")
        for rest, member in needed.items()
        if not value_or(getattr(spec, member), None)
    ]


ASSET_KINDS: tuple[AssetKind, ...] = (
    AssetKind(path="environment", kind="environment", title="environment", spec=specs.EnvironmentAsset),
    AssetKind(path="compute", kind="compute", title="compute resource", spec=specs.ComputeAsset),
    AssetKind(
        path="datasource/git",
        kind="git",
        title="Git data source",
        spec=specs.GitAsset,
        member="git",
    ),
    AssetKind(
        path="datasource/host-path",
        kind="hostPath",
        title="host path data source",
        spec=specs.HostPathAsset,
        member="hostPath",
    ),
    AssetKind(path="datasource/nfs", kind="nfs", title="NFS data source", spec=specs.NfsAsset, member="nfs"),
    AssetKind(path="datasource/pvc", kind="pvc", title="claim data source", spec=specs.PvcAsset, member="pvc"),
    AssetKind(
        path="datasource/s3",
        kind="s3",
        title="S3 data source",
        spec=specs.S3Asset,
        member="s3",
    ),
    AssetKind(
        path="datasource/config-map",
        kind="config-map",
        title="config map data source",
        spec=specs.ConfigMapAsset,
        member="config_map",
    ),
    AssetKind(
        path="datasource/secrets",
        kind="secret-volume",
        title="secret data source",
        spec=specs.SecretAsset,
        member="secret",
    ),
    AssetKind(
        path="credentials/access-key",
        kind="accessKey",
        title="access key credential",
        spec=specs.AccessKeyCredential,
        member="accessKey",
        prefix="accesskey-",
        secret_type="access-key",  # noqa: S106 - a type, no secret
        values=_access_key,
    ),
    AssetKind(
        path="credentials/password",
        kind="password",
        title="password credential",
        spec=specs.PasswordCredential,
        member="password",
        prefix="password-",
        secret_type="password",  # noqa: S106 - a type, no secret
        values=_password,
    ),
    AssetKind(
        path="credentials/docker-registry",
        kind="dockerRegistry",
        title="docker registry credential",
        spec=specs.DockerRegistryCredential,
        member="dockerRegistry",
        prefix="dockerregistry-",
        secret_type="docker-registry",  # noqa: S106 - a type, no secret
        values=_docker_registry,
    ),
    AssetKind(
        path="credentials/generic-secret",
        kind="genericSecret",
        title="generic secret credential",
        spec=specs.GenericSecretCredential,
        member="genericSecret",
        prefix="genericsecret-",
        secret_type="generic",  # noqa: S106 - a type, no secret
        values=_generic,
        is_deleted_at_once=True,
    ),
    AssetKind(
        path="credentials/ngc-api-key",
        kind="ngcApiKey",
        title="NGC API key credential",
        spec=specs.NgcCredential,
        member="ngcApiKey",
        prefix="genericsecret-ngcgs-",
        secret_type="ngc-api-key",  # noqa: S106 - a type, no secret
        values=_ngc,
        is_deleted_at_once=True,
    ),
)
BY_KIND = {kind.kind: kind for kind in ASSET_KINDS}
