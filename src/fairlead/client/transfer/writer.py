"""How one object is written to the target: created, changed, or only reported in a dry run."""

from typing import Any

from fairlead.client.client import Client
from fairlead.client.errors import ServerError
from fairlead.client.json_object import Json
from fairlead.client.transfer.bundle import Bundle
from fairlead.client.transfer.report import CHANGED, CREATED, UNCHANGED, OnStep, Report, ignore_step
from fairlead.client.transfer.scopes import Scopes


class Writer:
    """Writes to one target. If the target refuses an object, that is reported, and the others are written."""

    def __init__(self, target: Client, bundle: Bundle, *, is_dry: bool = False, updates: bool = False) -> None:
        self.target = target
        self.bundle = bundle
        self.is_dry = is_dry
        #: Whether existing departments, projects and node pools are changed to match the source.
        self.updates = updates
        self.report = Report(is_dry)
        self.scopes = Scopes(target, bundle)
        #: Told what is written next.
        self.on_step: OnStep = ignore_step

    def create(self, kind: str, name: str, path: str, body: Json, **query: object) -> Json | None:
        """Create an object; returns the answer, and None if the target refuses it."""
        if self.is_dry:
            self.report.add(CREATED, kind, name)
            return {"id": Scopes.NEW}
        answer = self._send(kind, name, "POST", path, body, **query)
        if answer is None:
            return None
        self.report.add(CREATED, kind, name)
        return answer if isinstance(answer, dict) else {}

    def put(self, kind: str, name: str, path: str, body: Json, outcome: str = CHANGED) -> None:
        if self.is_dry or self._send(kind, name, "PUT", path, body) is not None:
            self.report.add(outcome, kind, name)

    def leave_unchanged(self, kind: str, name: str, why: str = "") -> None:
        self.report.add(UNCHANGED, kind, name, why)

    def _send(self, kind: str, name: str, method: str, path: str, body: Json, **query: Any) -> Any:
        self.on_step(f"Writing {kind} {name}")
        try:
            answer = self.target.request(method, path, body, **query)
        except ServerError as error:
            if error.status >= 500 or error.status in (401, 403):
                raise
            reasons = "; ".join(str(issue) for issue in error.issues) or error.details or error.message
            self.report.lose(kind, name, f"the target refuses it: {reasons}")
            return None
        return {} if answer is None else answer
