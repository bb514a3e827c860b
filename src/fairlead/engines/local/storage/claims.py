"""The storage behind claims: a folder each below the data folder, or below that of its storage class.

Called by the engine. `claim.json` says whose it is; beside it lies `data` (a plain folder) or `image` (a file system of
the claim's size). Removing renames first, so that a crash in between leaves nothing that looks like a claim.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Collection, Iterator

from fairlead.engines.local.settings import LocalSettings
from fairlead.model.errors import Refused
from fairlead.model.pods.supplies import ClaimSupply

#: The class of claims that name none.
DEFAULT_CLASS = "local"
_RECORD = "claim.json"
_GOING = ".going-"


class ClaimFolders:
    def __init__(self, settings: LocalSettings) -> None:
        self._roots = {DEFAULT_CLASS: f"{os.path.abspath(settings.data_dir)}/claims", **dict(settings.storage_classes)}

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(self._roots)

    def folder(self, storage_class: str, claim_id: str) -> str:
        root = self._roots.get(storage_class or DEFAULT_CLASS)
        if root is None:
            known = ", ".join(self._roots)
            raise Refused(f"there is no storage class '{storage_class}'; there is {known}")
        if "/" in claim_id or claim_id.startswith("."):
            raise Refused(f"'{claim_id}' cannot be the id of a claim here: it names a folder")
        return f"{root}/{claim_id}"

    def is_plain(self, place: str) -> bool:
        """Whether what is kept there is a folder already, which then stays one."""
        return os.path.isdir(f"{place}/data")

    def prepare(self, claim: ClaimSupply) -> None:
        """Write down whose folder it is, before anything is put into it."""
        folder = self.folder(claim.storage_class, claim.id)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        record = {
            "name": claim.name,
            "workload": claim.workload_id,
            "size": claim.size_bytes,
            "annotations": dict(claim.attributes),
        }
        if _load(folder) != record:
            with open(f"{folder}/{_RECORD}.new", "w") as file:
                json.dump(record, file)
            os.rename(f"{folder}/{_RECORD}.new", f"{folder}/{_RECORD}")

    def drop(self, claim_ids: Collection[str], workload_id: str) -> None:
        """Remove these claims' storage, and that of a workload's ephemeral ones."""
        for folder, id in self._all():
            if id in claim_ids or (workload_id and _ephemeral_owner(id) == workload_id):
                _remove(folder)

    def retain(self, claim_ids: Collection[str], workload_ids: Collection[str]) -> list[str]:
        """Remove storage of workloads that are not known any more; returns folders that belong to no known claim."""
        unknown = []
        for folder, id in self._all():
            owner = _ephemeral_owner(id)
            if id in claim_ids or (owner and owner in workload_ids):
                continue
            if owner or (_load(folder) or {}).get("workload"):
                _remove(folder)
            else:
                unknown.append(folder)
        return unknown

    def _all(self) -> Iterator[tuple[str, str]]:
        """Every claim's (folder, id); what a crash left half removed is removed on the way."""
        for root in self._roots.values():
            with contextlib.suppress(FileNotFoundError):
                for name in os.listdir(root):
                    if name.startswith(_GOING):
                        shutil.rmtree(f"{root}/{name}", ignore_errors=True)
                    else:
                        yield f"{root}/{name}", name


def _ephemeral_owner(claim_id: str) -> str:
    """The workload of an ephemeral claim, `<workload>.<number>`; empty for any other."""
    owner, dot, number = claim_id.rpartition(".")
    return owner if dot and number.isdigit() else ""


def _load(folder: str) -> dict[str, object] | None:
    try:
        with open(f"{folder}/{_RECORD}") as file:
            record: dict[str, object] = json.load(file)
            return record
    except (OSError, ValueError):
        return None


def _remove(folder: str) -> None:
    root, name = os.path.split(folder)
    going = f"{root}/{_GOING}{name}"
    with contextlib.suppress(FileNotFoundError):
        os.rename(folder, going)
    shutil.rmtree(going, ignore_errors=True)
