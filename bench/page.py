"""The web page in Debian's Chromium: its size, first view, ten thousand rows, a long log, and its cost for a server.

Needs `make web` and Debian's chromium (`make system-packages`). What the page itself does is measured with a server
that plays ten thousand workloads (`played_api.py`); its first view and its costs with a real one.
"""

import contextlib
import gzip
import os
import re
import selectors
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, CDPSession, Page

from bench.peers import install_dstack
from bench.played_api import LOG_LINES, PAGE, PlayedApi
from bench.server import Server, serving
from bench.submissions import CONNECTIONS, NODE, load
from bench.table import Measurement, Options
from tests.e2e.browser import open_browser

ROWS = 10_000
PAGES = 200
#: Ten minutes of a very busy installation.
CHANGES = 180_000
SCROLL = "List of workloads"
#: Frames while a list is scrolled from its beginning to its end and back: how long each took, in milliseconds.
SCROLL_FRAMES = """async label => {
  const box = document.querySelector(`[aria-label="${label}"]`);
  const times = [];
  let last = performance.now();
  for (let step = 0; step < 120; step++) {
    box.scrollTop = (step < 60 ? step : 120 - step) / 60 * box.scrollHeight;
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    times.push(now - last);
    last = now;
  }
  return times;
}"""
#: Keeps what the browser tells of slow interactions, long tasks and the largest paint.
OBSERVE = """
window.seen = {events: [], tasks: [], paint: 0};
const observe = (type, take, more = {}) => new PerformanceObserver(list => list.getEntries().forEach(take))
  .observe({type, buffered: true, ...more});
observe("event", one => one.interactionId && seen.events.push(one.duration), {durationThreshold: 16});
observe("longtask", one => seen.tasks.push(one.duration));
observe("largest-contentful-paint", one => seen.paint = one.startTime);
"""


def first_view_size() -> float:
    """KB of JavaScript after gzip that the page loads before anything is shown."""
    names = re.findall(r'(?:src|href)="/ui/([^"]+\.js)"', (PAGE / "index.html").read_text())
    return sum((PAGE / f"{name}.gz").stat().st_size for name in names) / 1024


@contextlib.contextmanager
def visiting(browser: Browser, url: str) -> Iterator[tuple[Page, CDPSession]]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.add_init_script(OBSERVE)
    page.goto(url)
    yield page, context.new_cdp_session(page)
    context.close()


def measure_first_view(browser: Browser, server: Server, rounds: int) -> list[float]:
    """Seconds until the largest part of the overview is painted, with a processor of a quarter of the speed."""
    times = []
    for _ in range(rounds):
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        page.add_init_script(OBSERVE)
        url = f"http://{server.host}:{server.port}"
        page.goto(url + server.call("POST", "/api/v1/session/links")["path"])
        context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": 4})
        page.reload()
        page.get_by_role("heading", name="Overview").wait_for()
        page.get_by_text("GPUs by node pool").wait_for()
        times.append(page.evaluate("seen.paint") / 1000)
        context.close()
    return times


def open_list(page: Page) -> None:
    page.get_by_text(f"{ROWS} workloads").wait_for(timeout=60_000)


def interact(page: Page) -> list[float]:
    """Search, sort and select in a list of ten thousand; milliseconds from each key or click to the next paint."""
    page.evaluate("seen.events.length = 0")
    search = page.get_by_label("Search workloads")
    search.click()
    for key in "team-7 pending":
        search.press("Space" if key == " " else key)
    search.fill("")
    for column in ("Name", "GPUs", "Age"):
        page.get_by_role("columnheader").get_by_role("button", name=column).click()
    for key in "jjjjkkx":
        page.get_by_role("region", name=SCROLL).press(key)
    # The browser tells of an interaction after the paint that follows it.
    page.evaluate("() => new Promise(done => setTimeout(done, 200))")
    times: list[float] = page.evaluate("seen.events")
    return sorted(times) or [16.0]


def heap(session: CDPSession) -> float:
    session.send("HeapProfiler.collectGarbage")
    return float(session.send("Runtime.getHeapUsage")["usedSize"]) / 1e6


def measure_list(browser: Browser, rounds: int, changes: int) -> Iterator[Measurement]:
    with PlayedApi(ROWS) as api, visiting(browser, f"{api.url}/ui/workloads") as (page, session):
        open_list(page)
        frames = page.evaluate(SCROLL_FRAMES, SCROLL)
        yield Measurement("page: a frame while 10,000 rows scroll, p95", "ms", [percentile(frames, 0.95)], 33)
        times = [percentile(interact(page), 0.98) for _ in range(rounds)]
        note = "search, sort, keys"
        yield Measurement("page: interaction to next paint, 10,000 rows", "ms", times, 100, note=note)
        page.evaluate("seen.tasks.length = 0")
        api.send_changes(900, 300)
        frames = page.evaluate(SCROLL_FRAMES, SCROLL)
        note = "while the list scrolls"
        yield Measurement("page: a frame at 300 changes/s, p95", "ms", [percentile(frames, 0.95)], 33, note=note)
        api.sent.wait(60)
        began = time.monotonic()
        api.send_changes(changes, 3000)
        api.sent.wait(600)
        rate = changes / (time.monotonic() - began)
        page.wait_for_function("() => new Promise(done => setTimeout(() => done(true), 500))")
        note = f"sent at {rate:,.0f}/s; without the worker that all tabs share"
        yield Measurement(f"page: heap after {changes:,} changes", "MB", [heap(session)], 150, note=note)


def measure_log(browser: Browser) -> Iterator[Measurement]:
    with PlayedApi(1) as api:
        id = "00000000-0000-4000-8000-000000000000"
        began = time.monotonic()
        with visiting(browser, f"{api.url}/ui/workloads/{id}/logs") as (page, _):
            page.get_by_text(f"step {LOG_LINES - 1}").wait_for(timeout=120_000)
            shown = time.monotonic() - began
            page.get_by_label("Search in the log").fill("step 99999")
            page.get_by_text("1 matching line").wait_for()
            tasks = page.evaluate("seen.tasks")
            frames = page.evaluate(SCROLL_FRAMES, "Output")
        note = f"{LOG_LINES:,} lines"
        yield Measurement("page: a log until its last line is shown", "s", [shown], note=note)
        yield Measurement("page: longest stall while it is read and searched", "ms", [max(tasks, default=0)], 200)
        yield Measurement("page: a frame while the log scrolls, p95", "ms", [percentile(frames, 0.95)], 33)


def percentile(values: list[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_idle(browser: Browser, server: Server, seconds: float) -> float:
    """Part of a core that a server with one open page uses, in per cent."""
    url = f"http://{server.host}:{server.port}"
    with visiting(browser, url + server.call("POST", "/api/v1/session/links")["path"]) as (page, _):
        page.get_by_text("Live", exact=True).wait_for()
        before = processor_seconds(server.process.pid)
        page.wait_for_timeout(seconds * 1000)
        return 100 * (processor_seconds(server.process.pid) - before) / seconds


@contextlib.contextmanager
def watching(server: Server, pages: int) -> Iterator[None]:
    """As many streams as open pages have, compressed as for browsers; what arrives is read and dropped."""
    headers = f"Host: x\r\nAccept-Encoding: gzip\r\nAuthorization: Bearer {server.token}"
    request = f"GET /api/v1/workloads/watch HTTP/1.1\r\n{headers}\r\n\r\n".encode()
    chosen = selectors.DefaultSelector()
    links = [socket.create_connection((server.host, server.port)) for _ in range(pages)]
    is_over = threading.Event()

    def read() -> None:
        while not is_over.is_set():
            for key, _ in chosen.select(0.1):
                key.fileobj.recv(1 << 20)  # type: ignore[union-attr]  # only sockets are registered

    for link in links:
        link.sendall(request)
        link.recv(1024)
        chosen.register(link, selectors.EVENT_READ)
    reader = threading.Thread(target=read)
    reader.start()
    yield
    is_over.set()
    reader.join()
    for link in links:
        link.close()


def submission_rate(folder: Path, pages: int, requests: int) -> float:
    cores = sorted(os.sched_getaffinity(0))
    with serving(folder, NODE, {cores[0]}) as server, watching(server, pages):
        load(server, cores[-1], CONNECTIONS * 8, "before")
        return requests / float(load(server, cores[-1], requests, "counted")["seconds"])


def dstack_size() -> float:
    """The same of dstack's page, in the package that `--peers` installs."""
    start = next(install_dstack().rglob("dstack/_internal/server/*/index.html"))
    # Without what it loads from another host.
    names = re.findall(r'src="/?((?!https?:)[^"]+\.js)"', start.read_text())
    return sum(len(gzip.compress((start.parent / name).read_bytes(), 9)) for name in names) / 1024


def measure(options: Options) -> Iterator[Measurement]:
    rounds, changes, requests = (1, 6000, 1000) if options.quick else (5, CHANGES, 6000)
    yield Measurement("page: JavaScript of the first view, gzipped", "KB", [first_view_size()], 120)
    with open_browser() as browser:
        with serving(options.folder / "page", NODE) as server:
            note = "processor slowed down to a quarter"
            times = measure_first_view(browser, server, rounds)
            yield Measurement("page: largest paint of the overview", "s", times, 0.8, note=note)
            seconds = 5 if options.quick else 20
            yield Measurement("page: server's part of a core, idle", "%", [measure_idle(browser, server, seconds)], 1)
        yield from measure_list(browser, rounds, changes)
        yield from measure_log(browser)
    alone = [submission_rate(options.folder / f"alone-{one}", 0, requests) for one in range(rounds)]
    beside = [submission_rate(options.folder / f"pages-{one}", PAGES, requests) for one in range(rounds)]
    parts = [100 * rate / statistics.median(alone) for rate in beside]
    note = f"of {statistics.median(alone):,.0f}/s without pages; their readers share the machine"
    yield Measurement(f"page: submissions with {PAGES} open pages", "%", parts, 80, more_is_better=True, note=note)
    if options.peers:
        yield Measurement("dstack's page: JavaScript of the first view, gzipped", "KB", [dstack_size()])
