"""Every view of the page, as the tests and the pictures of the documentation go through them."""

from typing import NamedTuple

from playwright.sync_api import Page, expect

from tests.e2e.browser import Visit

PATIENCE = 60_000


class View(NamedTuple):
    name: str
    #: What the documentation calls it.
    caption: str
    #: Below /ui; `{name}` is the id of the workload of that name.
    path: str
    heading: str
    #: A text that is there once everything is loaded.
    text: str


_RUNNING = "/workloads/{segment-anything-large}"
VIEWS = (
    View("overview", "Overview", "/", "Overview", "of 16 GPUs allocated"),
    View("workloads", "Workloads", "/workloads", "Workloads", "diffusion-upscaler"),
    View("workload", "One workload", "/workloads/{llama-pretraining}", "llama-pretraining", "worker 2"),
    View(
        "why",
        "Why a workload waits",
        "/workloads/{diffusion-upscaler}",
        "diffusion-upscaler",
        "Who holds what it waits for",
    ),
    View("service", "An inference service", "/workloads/{chat}", "chat", "Revision 00001"),
    View("groups", "Groups of a distributed inference", "/workloads/{mixtral-serving}", "mixtral-serving", "leader"),
    View("logs", "Logs", f"{_RUNNING}/logs", "segment-anything-large", "checkpoint saved"),
    View("terminal", "Terminal", f"{_RUNNING}/terminal", "segment-anything-large", "Connected"),
    View("metrics", "Metrics", f"{_RUNNING}/metrics?span=15", "segment-anything-large", "Memory"),
    View("events", "Events", f"{_RUNNING}/events", "segment-anything-large", "ago"),
    View("spec", "Spec", "/workloads/{llama-pretraining}/spec", "llama-pretraining", "kind: DistributedWorkload"),
    View("submit", "Submit", "/submit?from={diffusion-upscaler}", "Submit a workload", "Has to wait"),
    View("cluster", "Cluster", "/cluster", "Cluster", "3 free"),
    View("organization", "Organization", "/organization", "Organization", "fair share"),
    View("people", "People", "/people", "People", "System administrator"),
    View("policies", "Policies", "/policies", "Policies", "built in"),
    View("library", "Library", "/library", "Library", "fine-tune"),
    View("reports", "Reports", "/reports", "Reports", "GPU-hours used"),
    View("audit", "Audit", "/audit", "Audit", "fairlead"),
    View("notifications", "Notifications", "/notifications", "Notifications", "refused"),
    View("settings", "Settings", "/settings", "Settings", "this one"),
)


def show(visit: Visit, view: View, ids: dict[str, str]) -> Page:
    """Open a view and wait until it is complete."""
    path = view.path
    for name, id in ids.items():
        path = path.replace(f"{{{name}}}", id)
    page = visit.open(f"/ui{path}")
    expect(page.get_by_role("heading", name=view.heading, exact=True, level=1)).to_be_visible(timeout=PATIENCE)
    expect(page.locator("main").get_by_text(view.text).first).to_be_visible(timeout=PATIENCE)
    return page
