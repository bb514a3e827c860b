"""The content of assets as members of a workload's spec. `control` loads the assets that a template names.

An environment sets the process, its variables, security and tools; a compute resource sets compute; data sources add
volumes.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

Plain = dict[str, Any]

#: From the kind of a data source to the list of volumes that it is added to.
_VOLUMES = {
    "git": "git",
    "hostPath": "hostPath",
    "nfs": "nfs",
    "pvc": "pvc",
    "s3": "s3",
    "config-map": "configMapVolume",
    "secret-volume": "secretVolume",
}
DATA_SOURCES = tuple(_VOLUMES)
#: Members of an asset that name a credential, and the member of a workload that names its secret.
_CREDENTIALS = {
    "passwordAssetId": "passwordSecret",
    "credentialId": "passwordSecret",
    "accessKeyAssetId": "accessKeySecret",
    "credentialAssetId": "secret",
}
#: Members of an environment that are at the top of a workload's spec; the others belong to its security.
_OF_PROCESS = frozenset(
    ("image", "imagePullPolicy", "command", "args", "workingDir", "createHomeDir", "probes", "tty", "stdin")
)


class HeldAsset(NamedTuple):
    """An asset and the claim that belongs to it."""

    kind: str
    name: str
    spec: Plain
    #: The claim that it created or names; empty for other kinds.
    claim_name: str = ""


def render_assets(assets: Iterable[HeldAsset], secrets: Mapping[str, str]) -> Plain:
    """The members of a spec that these assets set; `secrets` maps a credential's id to the name of its secret."""
    spec: Plain = {}
    for asset in assets:
        given = {name: value for name, value in asset.spec.items() if value is not None}
        if asset.kind == "environment":
            _add_environment(spec, given, secrets)
        elif asset.kind == "compute":
            spec["compute"] = given
        else:
            volumes = spec.setdefault("storage", {}).setdefault(_VOLUMES[asset.kind], [])
            volumes.append(_render_volume(asset, given, secrets))
    return spec


def credentials_of(assets: Iterable[HeldAsset]) -> set[str]:
    """The ids of the credentials that assets name."""
    ids = set()
    for asset in assets:
        ids |= {str(asset.spec[member]) for member in _CREDENTIALS if asset.spec.get(member)}
        variables = asset.spec.get("environmentVariables") or ()
        ids |= {str(each["credential"]["assetId"]) for each in variables if each and each.get("credential")}
    return ids


def _add_environment(spec: Plain, given: Plain, secrets: Mapping[str, str]) -> None:
    given.pop("overrideUidGidInWorkspace", None)
    connections = given.pop("connections", ())
    variables = [_render_variable(each, secrets) for each in given.pop("environmentVariables", ()) if each]
    if variables:
        spec["environmentVariables"] = variables
    for name, value in given.items():
        section = spec if name in _OF_PROCESS else spec.setdefault("security", {})
        section[name] = value
    for connection in connections:
        _add_connection(spec, connection)


def _render_variable(attributes: Plain, secrets: Mapping[str, str]) -> Plain:
    variable = {name: value for name, value in attributes.items() if value is not None}
    credential = variable.pop("credential", None)
    if credential:
        variable["secret"] = {"name": secrets.get(credential["assetId"], ""), "key": credential["key"]}
    return variable


def _add_connection(spec: Plain, connection: Plain) -> None:
    """A tool in the container becomes a port or a URL, an external tool a link."""
    outside, inside = connection.get("externalToolInfo"), connection.get("internalToolInfo")
    if outside:
        spec.setdefault("relatedUrls", []).append(
            {"name": connection["name"], "url": outside["externalUrl"], "type": outside["toolType"]}
        )
    elif inside:
        shown = {"container": inside["containerPort"], "toolType": inside["toolType"], "toolName": connection["name"]}
        if inside["connectionType"] == "ExternalUrl":
            chosen = (inside.get("externalUrlInfo") or {}).get("externalUrl")
            spec.setdefault("exposedUrls", []).append(
                {"name": connection["name"], **shown, **({"url": chosen} if chosen else {})}
            )
        elif inside["connectionType"] in ("NodePort", "LoadBalancer"):
            port = {"name": connection["name"], "serviceType": inside["connectionType"], **shown}
            spec.setdefault("ports", []).append(port)


def _render_volume(asset: HeldAsset, given: Plain, secrets: Mapping[str, str]) -> Plain:
    item = {"name": asset.name, **given}
    for member, instead in _CREDENTIALS.items():
        if member in item:
            item[instead] = secrets.get(item.pop(member), "")
    if asset.kind == "pvc":
        item = {name: value for name, value in item.items() if name in ("name", "path", "readOnly", "dataSharing")}
        item |= {"existingPvc": True, "claimName": asset.claim_name}
    return item
