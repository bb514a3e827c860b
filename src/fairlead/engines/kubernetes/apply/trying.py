"""Asks the API server whether pods could come of a workload's objects, without making one.

`engine.py` calls it when a controller could not make pods: some do not say why, and what is wrong for ever is to be
told from what is wrong at the moment.
"""

from typing import Any

from fairlead.engines.kubernetes.client.api import Api, ApiError
from fairlead.engines.kubernetes.client.resources import POD
from fairlead.engines.kubernetes.observe.events import is_checked, templates_of
from fairlead.engines.kubernetes.render.context import RenderContext
from fairlead.engines.kubernetes.render.workload import render_objects
from fairlead.model.pods.podset import PodSet


async def try_pods(api: Api, place: RenderContext, podsets: tuple[PodSet, ...]) -> str:
    """Why no pod can ever come of them, in the API server's words; empty if one can, or at another time could."""
    runners = render_objects(place, podsets).runners
    if is_checked({runner["kind"] for runner in runners}):
        return ""
    for template in (template for runner in runners for template in templates_of(runner)):
        metadata = {**template["metadata"], "name": place.name, "namespace": place.namespace}
        pod: dict[str, Any] = {"apiVersion": POD.api, "kind": POD.kind, "metadata": metadata, "spec": template["spec"]}
        try:
            await api.request("POST", POD.path(place.namespace), pod, query={"dryRun": "All"})
        except ApiError as error:
            # Other refusals may be over tomorrow, or are about the trial.
            if error.status == 422:
                return f"The cluster does not take pods of {runners[0]['kind']} {place.name}: {error}"
    return ""
