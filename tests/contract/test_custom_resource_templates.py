"""Objects of a cluster that name a template, side by side with the template's own objects: control on a real store."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from starlette.requests import Request

from fairlead.api.http.operation import Call
from fairlead.api.workloads.admission_webhook import ADMISSION_OPERATIONS, admit
from fairlead.control.context import Context
from fairlead.control.custom_resources.loop import CustomResourceSync
from fairlead.control.custom_resources.reader import CALLER
from fairlead.control.workloads.template_yaml import store_manifest
from fairlead.engines.base import CustomResources
from fairlead.model.custom_resource import CustomResource
from fairlead.model.records.event import Event
from fairlead.store.base import Change, Put, Query
from fairlead.store.collections import TEMPLATES, WORKLOADS
from tests.contract.test_control_over_time import in_store

TEMPLATE = {"usage": "Template", "image": {"value": "python:3.12"}}


class Objects:
    """A cluster's objects, whose changes are told and whose statuses are kept."""

    def __init__(self) -> None:
        self.found: dict[str, CustomResource] = {}
        self.changed: set[str] = set()
        self.written: list[str] = []
        self.notify: Callable[[], None] = lambda: None

    def put(self, id: str, name: str, spec: dict[str, Any], **members: Any) -> None:
        body = {"apiVersion": "run.ai/v2alpha1", "kind": "TrainingWorkload", "spec": spec}
        body["metadata"] = {"name": name, "namespace": "runai-default"}
        text = msgspec.json.encode(body)
        self._keep(CustomResource(id=id, namespace="runai-default", name=name, text=text, generation=1, **members))

    def _keep(self, applied: CustomResource) -> None:
        self.found[applied.id] = applied
        self.changed.add(applied.id)
        self.notify()

    def listen(self, notify: Callable[[], None]) -> None:
        self.notify = notify

    def take_changed(self) -> set[str]:
        changed, self.changed = self.changed, set()
        return changed

    def get(self, id: str) -> CustomResource | None:
        return self.found.get(id)

    def has_synced(self, kind: str) -> bool:
        return True

    def find_other_installation(self, namespace: str) -> str:
        return ""

    def is_installed(self, kind: str) -> bool:
        return False

    async def add_event(self, resource: CustomResource, type: str, reason: str, message: str) -> None:
        """Nobody reads them here."""

    async def hold(self, applied: CustomResource) -> None:
        self._keep(msgspec.structs.replace(self.found[applied.id], is_held=True))

    async def release(self, applied: CustomResource) -> None:
        self.found.pop(applied.id, None)
        self.changed.add(applied.id)
        self.notify()

    async def patch_spec(self, applied: CustomResource, owned: dict[str, str]) -> int:
        return 0

    async def set_status(self, applied: CustomResource, status: dict[str, Any]) -> None:
        self.written.append(applied.id)
        before = self.found[applied.id]
        merged = {name: value for name, value in (before.status | status).items() if value is not None}
        self._keep(msgspec.structs.replace(before, status=merged))


class Harness:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.objects = Objects()
        self.loop = CustomResourceSync(context, cast(CustomResources, self.objects), settle_seconds=0)

    def phase(self, id: str) -> str:
        return str(self.objects.found[id].status.get("phase", ""))

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(120):
            while not holds():  # noqa: ASYNC110 - the loop tells nobody when it has nothing left to do
                await asyncio.sleep(0.01)

    async def names(self) -> list[str]:
        return [one.name for one in await self.context.store.find(Query(collection=TEMPLATES))]


def run(tmp_path: Path, act: Callable[[Harness], Any]) -> None:
    async def test(context: Context) -> None:
        harness = Harness(context)
        task = asyncio.create_task(harness.loop.run())
        try:
            await act(harness)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    in_store(tmp_path, test)


def derived(base: str = "small") -> dict[str, Any]:
    return {"baseWorkload": base, "name": {"value": "derived"}, "command": {"value": "sleep"}}


async def apply_object(harness: Harness) -> None:
    harness.objects.put("t-1", "small", TEMPLATE)


async def store_file(harness: Harness) -> None:
    text = msgspec.json.encode(
        {
            "apiVersion": "run.ai/v2alpha1",
            "kind": "TrainingWorkload",
            "metadata": {"name": "small", "namespace": "runai-default"},
            "spec": TEMPLATE,
        }
    )
    await store_manifest(harness.context, CALLER, text.decode())


@pytest.mark.parametrize("come", [apply_object, store_file], ids=["as an object", "over REST"])
def test_what_was_refused_without_its_template_is_accepted_when_it_exists(tmp_path: Path, come: Any) -> None:
    async def act(harness: Harness) -> None:
        harness.objects.put("w-1", "derived", derived())
        await harness.until(lambda: harness.phase("w-1") == "Failed" and not harness.loop._busy)
        status = harness.objects.found["w-1"].status
        assert status["message"].startswith("spec.baseWorkload: there is no template 'small'")
        assert [one["type"] for one in status["conditions"]] == ["Accepted", "TemplateNotUsable"]
        # Said once, and not by turns with itself.
        assert harness.objects.written == ["w-1"]
        await come(harness)
        await harness.until(lambda: harness.phase("w-1") == "Creating")
        accepted, *others = harness.objects.found["w-1"].status["conditions"]
        assert (accepted["type"], accepted["status"]) == ("Accepted", "True")
        assert "TemplateNotUsable" not in [one["type"] for one in others]
        workload = await harness.context.store.get(WORKLOADS, "w-1")
        assert workload is not None
        assert workload.name == "derived"

    run(tmp_path, act)


def test_a_server_that_starts_later_takes_it_too(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        await store_file(harness)
        status = {"phase": "Failed", "message": "m", "observedGeneration": 1}
        waits = {**status, "conditions": [{"type": "TemplateNotUsable", "status": "True", "message": "m"}]}
        harness.objects.put("w-1", "derived", derived(), status=waits)
        harness.objects.put("w-2", "refused", derived(), status=status)
        await harness.until(lambda: harness.phase("w-1") == "Creating" and not harness.loop._busy)
        assert harness.phase("w-2") == "Failed"

    run(tmp_path, act)


def test_a_template_that_waits_for_its_own_base_is_taken_with_all_that_name_it(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        harness.objects.put("w-1", "derived", derived("middle"))
        harness.objects.put("t-2", "middle", {"usage": "Template", "baseWorkload": "small", "image": {"value": "a"}})
        await harness.until(lambda: {harness.phase("w-1"), harness.phase("t-2")} == {"Failed"})
        await apply_object(harness)
        await harness.until(lambda: (harness.phase("w-1"), harness.phase("t-2")) == ("Creating", "Template"))
        assert "conditions" not in harness.objects.found["t-2"].status

    run(tmp_path, act)


def test_an_object_that_goes_does_not_take_a_newer_ones_template_along(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        harness.objects.put("t-2", "small", TEMPLATE)
        await harness.until(lambda: harness.phase("t-2") == "Template" and not harness.loop._busy)
        # Looked at once more, as the watch showed it before it was gone.
        harness.objects.put("t-1", "small", TEMPLATE, is_leaving=True, is_held=True)
        await harness.until(
            lambda: "t-1" not in harness.objects.found and not harness.loop._busy and not harness.loop._waiting
        )
        assert await harness.names() == ["small"]
        harness.objects.put("t-2", "small", TEMPLATE, is_leaving=True, is_held=True)
        await harness.until(
            lambda: "t-2" not in harness.objects.found and not harness.loop._busy and not harness.loop._waiting
        )
        assert await harness.names() == []

    run(tmp_path, act)


def test_a_workload_that_is_edited_to_be_a_template_takes_nobodys_along(tmp_path: Path) -> None:
    async def act(harness: Harness) -> None:
        await store_file(harness)
        harness.objects.put("w-1", "small", {"name": {"value": "small"}, "image": {"value": "a"}})
        await harness.until(lambda: harness.phase("w-1") == "Creating" and not harness.loop._busy)
        harness.objects.put("w-1", "small", TEMPLATE, is_leaving=True, is_held=True)
        await harness.until(lambda: harness.phase("w-1") == "Creating" and not harness.loop._busy)
        workload = await harness.context.store.get(WORKLOADS, "w-1")
        assert workload is not None
        gone = msgspec.structs.replace(workload, version=workload.version + 1, gone=True)
        told = Event(at=1, subject=WORKLOADS.name, subject_id="w-1", project_id="1", reason="Deleted", message="m")
        await harness.context.store.commit(Change(writes=(Put(WORKLOADS, gone),), events=(told,)))
        await harness.until(lambda: "w-1" not in harness.objects.found and not harness.loop._busy)
        assert await harness.names() == ["small"]

    run(tmp_path, act)


@pytest.mark.parametrize(
    ("more", "phase"), [({}, "Creating"), ({"imagge": {"value": "a"}}, "Failed")], ids=["right", "with a mistake"]
)
def test_a_template_that_is_edited_to_be_a_workload_is_deleted(
    tmp_path: Path, more: dict[str, Any], phase: str
) -> None:
    async def act(harness: Harness) -> None:
        harness.objects.put("t-1", "small", TEMPLATE)
        await harness.until(lambda: harness.phase("t-1") == "Template" and not harness.loop._busy)
        status = harness.objects.found["t-1"].status | {"observedGeneration": 0}
        spec = {"name": {"value": "small"}, "image": {"value": "a"}, **more}
        harness.objects.put("t-1", "small", spec, status=status)
        await harness.until(lambda: harness.phase("t-1") == phase and not harness.loop._busy)
        assert await harness.names() == []

    run(tmp_path, act)


WORKLOAD = {"name": {"value": "small"}, "image": {"value": "a"}}


async def ask(context: Context, review: bytes) -> dict[str, Any]:
    """As the API server does, before it stores an object."""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": review}

    request = Request({"type": "http", "headers": [], "fairlead.body_limit": 1_000_000}, receive)
    answer = await admit(Call(context, ADMISSION_OPERATIONS[0], request, ""))
    found: dict[str, Any] = msgspec.json.decode(answer.body)
    return found


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        (TEMPLATE, TEMPLATE | {"image": {"value": "b"}}, ""),
        (WORKLOAD, TEMPLATE, "spec.usage: cannot be changed"),
        (TEMPLATE, WORKLOAD, "spec.usage: cannot be changed"),
        (WORKLOAD, WORKLOAD | {"active": {"value": False}}, ""),
    ],
    ids=["another template", "workload to template", "template to workload", "suspended"],
)
def test_what_the_object_says_about_an_edit(
    tmp_path: Path, before: dict[str, Any], after: dict[str, Any], want: str
) -> None:
    def body(spec: dict[str, Any]) -> dict[str, Any]:
        metadata = {"name": "small", "namespace": "runai-default"}
        return {"apiVersion": "run.ai/v2alpha1", "kind": "TrainingWorkload", "metadata": metadata, "spec": spec}

    async def test(context: Context) -> None:
        question = {"uid": "q", "operation": "UPDATE", "namespace": "runai-default"}
        request = {**question, "object": body(after), "oldObject": body(before)}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        answer = await ask(context, msgspec.json.encode(review))
        told = answer["response"].get("status", {}).get("message", "")
        assert answer["response"]["allowed"] is (told == "")
        assert want in told if want else not told

    in_store(tmp_path, test)
