"""Which URL a workload gets, who may open it, and who answers there."""

from typing import Any

import msgspec
import pytest

from fairlead.control.decide.draft import WorkloadEntry
from fairlead.control.serving.urls import UrlLocation, UrlRegistry, UrlSettings, locate, parse_custom_url, render_url
from fairlead.model.pods.podset import PodContainer
from fairlead.model.records.people import Caller
from fairlead.model.records.phase import PodPhase
from tests.builders import container_fields, pod, podset, workload

SETTINGS = UrlSettings(domain="localhost", port=7421)


def entry(name: str, *urls: dict[str, Any], project: str = "research") -> WorkloadEntry:
    fields = {"exposedUrls": [{"container": 8080, **url} for url in urls]}
    made = podset(container=PodContainer(image="x", fields=container_fields(fields)))
    return WorkloadEntry(workload=workload(name, project_id=project, project_name=project), podsets=(made,))


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ("https://Tools.example.com/Board/", "//tools.example.com/Board"),
        ("tools.example.com", "//tools.example.com"),
        ("/team/board", "///team/board"),
        ("ftp://tools.example.com", ""),
        ("https://two words/", ""),
        ("https://", ""),
    ],
)
def test_a_url_that_a_user_chose(given: str, want: str) -> None:
    assert parse_custom_url(given) == want


@pytest.mark.parametrize(
    ("url", "settings", "want"),
    [
        ("", SETTINGS, "http://web-research.localhost:7421/"),
        ("-2", SETTINGS, "http://web-research-2.localhost:7421/"),
        ("//tools.example.com/board", SETTINGS, "http://tools.example.com:7421/board/"),
        ("", UrlSettings(domain="a.com", port=443, scheme="https", by_path=True), "https://a.com/research/web/"),
        ("///board", UrlSettings(domain="a.com", port=80), "http://a.com/board/"),
    ],
)
def test_where_a_recorded_url_is(url: str, settings: UrlSettings, want: str) -> None:
    place = locate(entry("web").workload, url, settings)
    assert render_url(place, settings) == want


def test_a_long_name_still_makes_a_label() -> None:
    one, two = (locate(entry("w" * 62 + end).workload, "", SETTINGS).host for end in "ab")
    assert len(one.partition(".")[0]) <= 63
    assert one != two


def test_two_urls_of_one_workload_are_distinguished() -> None:
    assert UrlRegistry(SETTINGS).claim(entry("web", {}, {})) == (("", "-2"), ())


def test_names_that_run_together_are_distinguished() -> None:
    registry = UrlRegistry(SETTINGS)
    assert registry.claim(entry("a-b", {}, project="c")) == (("",), ())
    names, refused = registry.claim(entry("a", {}, project="b-c"))
    assert not refused
    assert names[0]


def test_a_taken_choice_is_refused_naming_the_holder_until_it_is_free() -> None:
    registry = UrlRegistry(SETTINGS)
    first, second = entry("first", {"url": "x.example.com"}), entry("second", {"url": "http://x.example.com/"})
    assert registry.claim(first) == (("//x.example.com",), ())
    _, ((field, why),) = registry.claim(second)
    assert field == "exposedUrls[0].url"
    assert why == "x.example.com is taken by workload first of project research"
    assert registry.claim(first) == (("//x.example.com",), ()), "its own claim again"
    registry.release(first.workload.id)
    assert registry.claim(second) == (("//x.example.com",), ())


def test_the_holder_of_another_project_is_not_named() -> None:
    registry = UrlRegistry(SETTINGS)
    registry.claim(entry("first", {"url": "x.example.com"}, project="secret"))
    _, ((_, why),) = registry.claim(entry("second", {"url": "x.example.com"}, project="open"))
    assert why == "x.example.com is taken by a workload of another project"


def test_the_longest_beginning_of_a_path_wins() -> None:
    registry = UrlRegistry(SETTINGS)
    registry.claim(entry("all", {"url": "x.example.com"}))
    registry.claim(entry("part", {"url": "x.example.com/a/b"}))
    found = [registry.find("x.example.com", path) for path in ("/a/b/c", "/a/bc", "/")]
    assert [route and route.owner.split()[1] for route in found] == ["part", "all", "all"]
    assert registry.find("y.example.com", "/") is None


@pytest.mark.parametrize(
    ("url", "want"),
    [
        ({"authorizationType": "authenticatedUsers"}, True),
        ({"authorizationType": "authorizedUsers", "authorizedUsers": ["ada@example.com"]}, True),
        ({"authorizationType": "authorizedUsers", "authorizedUsers": ["bob@example.com"]}, False),
        ({"authorizationType": "authorizedGroups", "authorizedGroups": ["vision"]}, True),
        ({"authorizationType": "authorizedGroups", "authorizedGroups": ["speech"]}, False),
        ({"authorizationType": "authorizedGroups", "authorizedGroups": []}, False),
    ],
)
def test_who_may_open_it(url: dict[str, Any], want: bool) -> None:
    registry = UrlRegistry(SETTINGS)
    registry.claim(entry("web", url))
    route = registry.find("web-research.localhost", "/")
    assert route is not None
    assert route.location == UrlLocation("web-research.localhost")
    assert route.admits(Caller("ada@example.com", "1", groups=("vision",))) is want


def test_only_ready_pods_answer() -> None:
    registry = UrlRegistry(SETTINGS)
    pods = (
        pod("a", ready=True),
        pod("b"),
        pod("c", ready=True, phase=PodPhase.STARTING),
        pod("d", ready=True, stopping_for="delete"),
    )
    held = entry("web", {})
    names, _ = registry.claim(held)
    recorded = msgspec.structs.replace(held.workload, urls=names)
    registry.update(msgspec.structs.replace(held, workload=recorded, pods=pods))
    assert registry.ready_pods(recorded.id) == ["pod-a"]
