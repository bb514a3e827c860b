"""Nodes on the page: drained after a look at what would follow, and used again; which of their GPUs a pod has."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browser import Visit
from tests.e2e.server import Server
from tests.web.conftest import sign_in

pytestmark = [pytest.mark.web, pytest.mark.debian("chromium")]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Server]:
    """A server of its own, because draining its node concerns everything that runs there."""
    server = Server(tmp_path / "data", "--personal", "--node", "lab:cpu=2,memory=2Gi,gpus=1").start()
    yield server
    server.close()


def test_a_node_is_drained_and_used_again(lab: Server, browser: Browser) -> None:
    visit = Visit(browser, lab.url)
    sign_in(visit, lab)
    id = lab.run("stays", "sleep", "infinity", compute={"gpuDevicesRequest": 1})
    lab.until_phase(id, "Running")
    page = visit.open("/ui/cluster")
    node = page.get_by_role("article", name="Node lab")
    node.get_by_role("button", name="Drain, what if… lab").click()
    dialog = page.get_by_role("dialog", name="Node lab")
    dialog.get_by_role("button", name="Drain it").click()
    expect(dialog.get_by_role("status")).to_contain_text(re.compile("Would be evicted: .*stays"))
    assert lab.phase(id) == "Running"

    dialog.get_by_role("button", name="Drain lab").click()
    expect(node).to_contain_text("drained")
    lab.until_phase(id, "Pending")
    # Views are changed without loading the page anew, so that what was done can still be taken back.
    page.get_by_role("navigation", name="Views").get_by_role("link", name="Overview").click()
    attention = page.get_by_role("region", name="Needs attention")
    expect(attention.get_by_role("listitem").filter(has_text="stays")).to_contain_text("Evicted")
    attention.get_by_role("link", name="stays").click()
    why = page.get_by_role("region", name="Why it waits, and until when")
    expect(why).to_contain_text("Evicted: node lab is being drained")
    page.get_by_role("navigation", name="Views").get_by_role("link", name="Cluster").click()
    expect(node).to_contain_text("drained")
    page.get_by_role("status", name="What was done").get_by_role("button", name="Undo").click()
    expect(node).not_to_contain_text("drained")
    lab.until_phase(id, "Running")

    page = visit.open(f"/ui/workloads/{id}")
    expect(page.get_by_role("region", name="Pods")).to_contain_text("1 GPU, number 0")
    page = visit.open(f"/ui/workloads/{id}/spec")
    page.get_by_role("button", name="Kubernetes objects").click()
    expect(page.get_by_role("region", name="Spec as text")).to_contain_text("kind: Job")
    visit.close()
    assert visit.errors == []
