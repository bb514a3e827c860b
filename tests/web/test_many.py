"""Many of everything: tabs, workloads, people, clusters; a slow network; messages to people."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from bench.played_api import PlayedApi
from tests.e2e.browser import Visit
from tests.e2e.cli_calls import Caller
from tests.e2e.server import Server
from tests.memory_api.process import running_api
from tests.web.conftest import NODES, sign_in

pytestmark = [pytest.mark.web, pytest.mark.debian("chromium")]

TABS = 10
ROWS = 10_000


def link(page: Page, name: str) -> Locator:
    return page.get_by_role("link", name=name, exact=True)


def test_ten_tabs_share_one_stream(browser: Browser) -> None:
    with PlayedApi(3) as api:
        visit = Visit(browser, api.url)
        tabs = [visit.page, *(visit.page.context.new_page() for _ in range(TABS - 1))]
        for tab in tabs:
            tab.goto(f"{api.url}/ui/workloads")
            expect(tab.get_by_text("Live", exact=True)).to_be_visible()
        api.send_changes(3, 1e9)
        for tab in tabs:
            # The first workload's change, by the stream.
            expect(tab.locator("tbody")).to_contain_text("in use (2)")
        # Seven would leave no connection of HTTP/1.1 for anything else.
        assert api.streams == 1
        visit.close()


def test_ten_thousand_workloads_are_searched_sorted_and_scrolled(browser: Browser) -> None:
    with PlayedApi(ROWS) as api:
        visit = Visit(browser, api.url, viewport={"width": 1440, "height": 900})
        page = visit.open("/ui/workloads")
        expect(page.get_by_text(f"{ROWS} workloads")).to_be_visible()
        box = page.get_by_role("region", name="List of workloads")
        # Only what is in sight is in the document.
        assert page.locator("tbody tr").count() < 60
        box.evaluate("element => element.scrollTop = element.scrollHeight")
        expect(page.locator(f"tbody tr[aria-rowindex='{ROWS + 1}']")).to_be_visible()
        page.get_by_role("columnheader", name="GPUs").get_by_role("button").click()
        expect(page).to_have_url(re.compile("sort=gpusAsked"))
        page.get_by_label("Search workloads").fill("workload-9999")
        expect(page.get_by_text(f"1 of {ROWS} workloads")).to_be_visible()
        expect(link(page, "workload-9999")).to_be_visible()
        api.send_changes(2 * ROWS, 1e9)
        # The change comes with the stream, and the filter still holds.
        expect(page.locator("tbody")).to_contain_text(re.compile(r"in use \(\d{2,}\)"))
        expect(page.get_by_text(f"1 of {ROWS} workloads")).to_be_visible()
        visit.close()


def test_a_slow_network_shows_what_is_there_and_then_the_rest(browser: Browser, server: Server) -> None:
    id = server.run("from-far-away", "true")
    visit = Visit(browser, server.url)
    sign_in(visit, server)
    session = visit.page.context.new_cdp_session(visit.page)
    # A bad line: 400 ms away, 50 KB/s.
    limits = {"offline": False, "latency": 400, "downloadThroughput": 50_000, "uploadThroughput": 20_000}
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", limits)
    page = visit.open("/ui/workloads")
    expect(page.get_by_role("heading", name="Workloads", exact=True)).to_be_visible()
    expect(link(page, "from-far-away")).to_be_visible()
    link(page, "from-far-away").click()
    # The view is loaded only now; until then the page says so.
    expect(page.get_by_role("heading", name="from-far-away", level=1)).to_be_visible()
    expect(page.get_by_role("region", name="Phases")).to_contain_text("Completed")
    assert visit.errors == []
    visit.close()
    server.call("DELETE", f"/api/v1/workloads/trainings/{id}")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a second cluster: an API server in memory that plays its pods."""
    folder = tmp_path_factory.mktemp("shared")
    server = Server(folder / "data", "--personal", *NODES, "--notify-allow", "127.0.0.1").start()
    with running_api(folder / "lab", nodes=2) as api:
        Caller(server.data_dir).ok("cluster", "add", "lab", "--kubeconfig", str(api.kubeconfig))
        Caller(server.data_dir).ok("project", "create", "vision", "--cluster", "lab")
        Caller(server.data_dir).ok("project", "create", "speech")
        yield server
        server.close()


def submit(server: Server, project: str, name: str) -> str:
    projects = server.call("GET", "/api/v1/org-unit/projects").json["projects"]
    [row] = [one for one in projects if one["name"] == project]
    spec = {"image": "fairlead.local/host", "command": "sleep", "args": "infinity"}
    body = {"name": name, "projectId": row["id"], "clusterId": row["clusterId"], "spec": spec}
    answer = server.call("POST", "/api/v1/workloads/trainings", body)
    assert answer.status == 202, answer
    return str(answer.json["workloadId"])


def invite(server: Server, email: str, project: str) -> str:
    """A researcher of one project; returns the password."""
    password = server.call("POST", "/api/v1/users", {"email": email}).json["tempPassword"]
    Caller(server.data_dir).ok("user", "grant", email, "--role", "l1-researcher", "--project", project)
    return str(password)


def test_every_view_is_narrowed_to_one_of_several_clusters(browser: Browser, shared: Server) -> None:
    ids = [submit(shared, "default", "here"), submit(shared, "vision", "there")]
    visit = Visit(browser, shared.url, viewport={"width": 1440, "height": 900})
    sign_in(visit, shared)
    page = visit.open("/ui/workloads")
    expect(link(page, "here")).to_be_visible()
    expect(link(page, "there")).to_be_visible()
    page.get_by_label("Cluster", exact=True).select_option("lab")
    expect(link(page, "here")).to_have_count(0)
    expect(link(page, "there")).to_be_visible()
    expect(page).to_have_url(re.compile(r"cluster=lab"))
    # The choice goes along, and is part of every address.
    page.get_by_role("navigation", name="Views").get_by_role("link", name="Organization").click()
    expect(page).to_have_url(re.compile(r"/ui/organization\?cluster=lab$"))
    expect(link(page, "vision")).to_be_visible()
    expect(link(page, "speech")).to_have_count(0)
    page.get_by_role("navigation", name="Views").get_by_role("link", name="Cluster").click()
    expect(page.get_by_role("article", name="Node lab")).to_have_count(0)
    expect(page.get_by_role("article")).to_have_count(2)
    page.keyboard.press("g")
    page.keyboard.press("n")
    expect(page.get_by_label("Project", exact=True).get_by_role("option")).to_have_text(["vision"])
    page.get_by_label("Cluster", exact=True).select_option("Every cluster")
    expect(page.get_by_label("Project", exact=True).get_by_role("option")).to_have_count(3)
    visit.close()
    for id in ids:
        shared.call("DELETE", f"/api/v1/workloads/trainings/{id}")


def test_people_policies_library_and_audit_are_of_one_cluster_too(browser: Browser, shared: Server) -> None:
    projects = {one["name"]: one for one in shared.call("GET", "/api/v1/org-unit/projects").json["projects"]}
    for project in ("speech", "vision"):
        invite(shared, f"{project}@lab.example", project)
        policy = {"rules": {"compute": {"gpuDevicesRequest": {"max": 2}}}}
        where = {"scope": "project", "projectId": int(projects[project]["id"])}
        body = {"meta": {"name": f"policy of {project}", **where}, "policy": policy}
        assert shared.call("PUT", "/api/v2/policy/workspaces", body).status == 200
        asset = {"meta": {"name": f"size-of-{project}", **where}, "spec": {"cpuCoreRequest": 1}}
        assert shared.call("POST", "/api/v1/asset/compute", asset).status == 202
    visit = Visit(browser, shared.url)
    sign_in(visit, shared)
    page = visit.page
    for path, of_vision, of_speech in (
        ("people", "vision@lab.example", "speech@lab.example"),
        ("policies", "policy of vision", "policy of speech"),
        ("library", "size-of-vision", "size-of-speech"),
        ("audit", "asset size-of-vision", "asset size-of-speech"),
    ):
        visit.open(f"/ui/{path}")
        expect(page.get_by_role("cell", name=of_vision, exact=True)).to_be_visible()
        expect(page.get_by_role("cell", name=of_speech, exact=True)).to_be_visible()
        page.get_by_label("Cluster", exact=True).select_option("lab")
        expect(page.get_by_role("cell", name=of_speech, exact=True)).to_have_count(0)
        expect(page.get_by_role("cell", name=of_vision, exact=True)).to_be_visible()
    # What is of the whole installation is of every cluster.
    visit.open("/ui/people?cluster=lab")
    expect(page.get_by_role("cell", name=shared.credentials["username"], exact=True)).to_be_visible()
    page.get_by_role("button", name="Grant a role").click()
    where_choice = page.get_by_role("dialog").get_by_label("Where")
    expect(where_choice.get_by_role("option", name="Project vision")).to_have_count(1)
    expect(where_choice.get_by_role("option", name="Project speech")).to_have_count(0)
    visit.close()


def test_two_people_do_not_see_each_others_things(browser: Browser, shared: Server) -> None:
    names = {"ada@lab.example": "speech", "bob@lab.example": "default"}
    passwords = {email: invite(shared, email, project) for email, project in names.items()}
    ids = {project: submit(shared, project, f"secret-of-{project}") for project in names.values()}
    for email, project in names.items():
        [other] = set(names.values()) - {project}
        visit = Visit(browser, shared.url)
        page = visit.open("/ui/workloads")
        page.get_by_label("User name").fill(email)
        page.get_by_label("Password").fill(passwords[email])
        page.get_by_role("button", name="Sign in", exact=True).click()
        expect(link(page, f"secret-of-{project}")).to_be_visible()
        # What only administrators can do or see is not offered.
        views = page.get_by_role("navigation", name="Views")
        expect(views.get_by_role("link", name="Submit")).to_be_visible()
        expect(views.get_by_role("link", name="Audit")).to_have_count(0)
        for path in ("", "workloads", "cluster", "organization", "reports", "policies"):
            visit.open(f"/ui/{path}")
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            expect(page.get_by_text("Live", exact=True)).to_be_visible()
            page.wait_for_load_state("load")
            expect(page.locator("body")).not_to_contain_text(f"secret-of-{other}")
        expect(page.get_by_role("button", name=re.compile("^Change quota"))).to_have_count(0)
        # Nor by an address that somebody sent.
        visit.open(f"/ui/workloads/{ids[other]}")
        expect(page.get_by_role("alert")).to_contain_text("There is no workload with the id")
        # Nothing leads to nodes, which they may not read.
        visit.open("/ui/")
        expect(page.get_by_role("heading", name="Projects")).to_be_visible()
        expect(views.get_by_role("link", name="Cluster")).to_have_count(0)
        expect(page.get_by_text("may not read")).to_have_count(0)
        visit.close()
    for id in ids.values():
        shared.call("DELETE", f"/api/v1/workloads/trainings/{id}")


def test_a_rule_is_added_tried_and_its_error_shown(browser: Browser, shared: Server) -> None:
    visit = Visit(browser, shared.url)
    sign_in(visit, shared)
    page = visit.open("/ui/notifications")
    expect(page.get_by_text("There are no notification rules")).to_be_visible()
    page.get_by_role("button", name="Add a rule").click()
    dialog = page.get_by_role("dialog", name="Add a rule")
    dialog.get_by_label("About").select_option("Project speech")
    dialog.get_by_label("a workload waits for a long time").check()
    dialog.get_by_label("Minutes after which").fill("90")
    target = dialog.get_by_label("URL")
    target.fill("ftp://127.0.0.1/hook")
    dialog.get_by_role("button", name="Add", exact=True).click()
    # Refused in the server's words, in the dialog.
    expect(dialog.get_by_role("alert")).to_contain_text("http")
    target.fill("http://127.0.0.1:9/hook")
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="shown only now")).to_be_visible()
    rules = page.get_by_role("region", name="Rules")
    expect(rules).to_contain_text("project speech")
    expect(rules).to_contain_text("failed, waiting (1 h)")
    page.get_by_role("button", name="Send a test message to 127.0.0.1").click()
    expect(page.get_by_role("status", name="What was done")).to_contain_text("Sending a test message")
    errors = page.get_by_role("region", name="Messages that were not delivered").first

    def reload_until_refused() -> None:
        page.reload()
        expect(errors).to_contain_text("refused", timeout=2000)

    retry(reload_until_refused)
    page.get_by_role("button", name="Delete the rule for 127.0.0.1").click()
    dialog = page.get_by_role("dialog", name="Delete this rule?")
    expect(dialog).to_contain_text("No more messages go to 127.0.0.1")
    dialog.get_by_role("button", name="Delete the rule for 127.0.0.1").click()
    expect(page.get_by_text("There are no notification rules")).to_be_visible()
    assert shared.call("GET", "/api/v1/notification-rules").json["rules"] == []
    visit.close()


def retry(attempt: Callable[[], None], times: int = 30) -> None:
    """The page does not follow deliveries by itself; whoever waits for one loads it again."""
    for _ in range(times - 1):
        try:
            attempt()
        except AssertionError:
            continue
        return
    attempt()


def test_a_session_elsewhere_is_ended(browser: Browser, shared: Server) -> None:
    visits = [Visit(browser, shared.url) for _ in range(2)]
    for visit in visits:
        sign_in(visit, shared)
    page = visits[0].open("/ui/settings")
    other = visits[1].open("/ui/workloads")
    expect(other.get_by_text("Live", exact=True)).to_be_visible()
    ends = page.get_by_role("button", name=re.compile("^End the session"))
    expect(ends.first).to_be_visible()
    for _ in range(ends.count()):
        count = ends.count()
        ends.first.click()
        page.get_by_role("dialog", name="End this session?").get_by_role("button", name="End the session").click()
        expect(ends).to_have_count(count - 1)
    other.reload()
    expect(other.get_by_role("heading", name="Sign in to Fairlead")).to_be_visible()
    expect(page.get_by_role("region", name="Sessions")).to_contain_text("this one")
    for visit in visits:
        visit.close()
