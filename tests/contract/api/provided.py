"""Makes everything that a spec names, so that a submission with names is accepted."""

from typing import Any

import msgspec

from fairlead.admission.names import names_used
from fairlead.kinds import KINDS
from fairlead.model.records.assets import (
    Claim,
    ConfigMap,
    DataVolume,
    Reference,
    Secret,
    project_scope_key,
    user_scope_key,
)
from fairlead.store.base import Change, Put
from fairlead.store.collections import CLAIMS, CONFIG_MAPS, DATA_VOLUMES, SECRETS
from tests.contract.api.api_server import ApiServer


def provide(api: ApiServer, spec: dict[str, Any], project_id: str = "1") -> None:
    """Put what the spec of a training names into the store; what cannot be made (storage classes) is left out of it."""
    for item in spec.get("storage", {}).get("pvc") or ():
        (item.get("claimInfo") or {}).pop("storageClass", None)
    uses = names_used(msgspec.convert(spec, KINDS["training"].spec))
    keys: dict[tuple[str, str], set[str]] = {}
    for use in uses:
        keys.setdefault((use.reference, use.name), set()).add(use.key)
    writes = []
    for (what, name), wanted in keys.items():
        head: dict[str, Any] = {"id": api.context.new_id(), "version": 1, "name": name}
        place = project_scope_key(project_id)
        values = dict.fromkeys(sorted(wanted - {""}), "x")
        if what in (Reference.SECRET, Reference.USER_CREDENTIAL):
            where = place if what is Reference.SECRET else user_scope_key(api.credentials.client_id)
            sealed = api.context.vault.seal(values, head["id"])
            writes.append(Put(SECRETS, Secret(**head, scope_key=where, keys=tuple(values), sealed=sealed)))
        elif what is Reference.CONFIG_MAP:
            writes.append(Put(CONFIG_MAPS, ConfigMap(**head, scope_key=place, data=values)))
        elif what is Reference.CLAIM:
            writes.append(Put(CLAIMS, Claim(**head, scope_key=place, project_id=project_id, size="1G")))
        elif what is Reference.DATA_VOLUME:
            volume = DataVolume(id=name, version=1, name=name, scope_key=place, project_id=project_id, claim_name="c")
            writes.append(Put(DATA_VOLUMES, volume))
        else:
            assert what is Reference.STORAGE_CLASS
    api.do(api.context.store.commit(Change(writes=tuple(writes))))
