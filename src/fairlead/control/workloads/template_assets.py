"""Loads the assets that a template names, as members of a spec."""

from collections.abc import Collection
from typing import Any

import msgspec

from fairlead.admission.assets import DATA_SOURCES, HeldAsset, credentials_of, render_assets
from fairlead.control.assets.assets import load_claim_of, load_secret_of
from fairlead.control.context import Context
from fairlead.model.errors import ComplianceIssue, Invalid, refuse_malformed
from fairlead.model.records.assets import Asset
from fairlead.store.collections import ASSETS

Plain = dict[str, Any]
#: The members of a template that name assets.
_SINGLE = ("environment", "compute")
_SOURCES = "datasources"


def _named(assets: Plain) -> list[tuple[str, str, tuple[str, ...]]]:
    """(path, id, allowed kinds) of every asset that a template names."""
    ids_by_kind: list[tuple[str, str, tuple[str, ...]]] = []
    ids_by_kind += [(f"assets.{kind}", str(assets[kind]), (kind,)) for kind in _SINGLE if assets.get(kind)]
    for number, source in enumerate(assets.get(_SOURCES) or ()):
        kinds = (source["kind"],) if source.get("kind") else DATA_SOURCES
        ids_by_kind.append((f"assets.{_SOURCES}[{number}]", str(source["id"]), kinds))
    return ids_by_kind


async def load_members(context: Context, assets: Plain, usable: Collection[str]) -> Plain:
    """The members of a spec that the assets set; raises Invalid for assets that are not usable in these scopes.

    Private assets are not usable, because a template is for everybody in its scope.
    """
    contents, issues = [], []
    for path, id, kinds in _named(assets):
        asset: Asset | None = await context.store.get(ASSETS, id.lower())
        if asset is None or asset.kind not in kinds or asset.scope_key not in usable or asset.private:
            issues.append(
                ComplianceIssue(path, f"there is no {' or '.join(kinds)} with the id '{id[:60]}' in this scope")
            )
            continue
        claim = await load_claim_of(context, asset) if asset.kind == "pvc" else None
        spec: Plain = msgspec.json.decode(bytes(asset.spec))
        name = claim.name if claim is not None else spec.get("claimName") or ""
        contents.append(HeldAsset(kind=asset.kind, name=asset.name, spec=spec, claim_name=name))
    refuse_malformed(issues)
    return render_assets(contents, {id: await _secret_name(context, id) for id in credentials_of(contents)})


async def _secret_name(context: Context, credential_id: str) -> str:
    credential: Asset | None = await context.store.get(ASSETS, credential_id.lower())
    if credential is None:
        raise Invalid(
            issues=(ComplianceIssue("assets", f"names a credential that does not exist: {credential_id[:60]}"),)
        )
    secret = await load_secret_of(context, credential)
    spec: Plain = msgspec.json.decode(bytes(credential.spec))
    return secret.name if secret is not None else str(spec.get("existingSecretName") or "")
