"""URLs as Ingress objects: where each leads, who is asked about it, and which get none."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.control.decide.draft import WorkloadEntry
from fairlead.control.serving.urls import UrlRegistry, UrlSettings, render_routes
from fairlead.engines.kubernetes.configuration import read_ingress
from fairlead.engines.kubernetes.render.context import LaunchChoices
from fairlead.engines.kubernetes.render.workload import render_objects
from fairlead.formats.rest.requests import read_submission
from fairlead.kinds import KINDS
from fairlead.model.errors import Refused
from fairlead.model.pods.podset import PodSet
from fairlead.model.pods.urls import IngressSettings, UrlRoute
from fairlead.model.records.revision import Stage
from fairlead.model.spec.fields import build
from tests.builders import workload
from tests.unit.engines.golden_place import GOLDEN_PLACE

FOLDER = Path(__file__).parents[4] / "golden"
REQUESTS = sorted(path.with_name(f"{path.name.split('.')[0]}.request.json") for path in FOLDER.glob("*/*.ingress.json"))
NGINX = "nginx.ingress.kubernetes.io"
ENTRANCE = IngressSettings(
    ingress_class="nginx",
    domain="apps.example.com",
    server="fairlead.fairlead.svc.cluster.local",
    port=7420,
    proxy_port=7421,
)
BY_HOST = UrlSettings(domain="apps.example.com", port=80)
BY_PATH = UrlSettings(domain="apps.example.com", port=80, by_path=True)


def podsets(kind: str, **spec: Any) -> tuple[PodSet, ...]:
    found: tuple[PodSet, ...] = KINDS[kind].podsets(build(KINDS[kind].spec, {"image": "x", **spec}))
    return found


def render(
    sets: tuple[PodSet, ...],
    settings: UrlSettings = BY_HOST,
    entrance: IngressSettings | None = ENTRANCE,
    **members: Any,
) -> dict[str, dict[str, Any]]:
    """The Ingress objects and our proxy's Service, by name, for URLs that are claimed as the loop claims them."""
    entry = WorkloadEntry(workload=workload("golden", project_name="team-a"), podsets=sets)
    names, refused = UrlRegistry(settings).claim(entry)
    assert not refused
    urls = tuple(route.for_engine for route in render_routes(entry.workload, sets, names, settings))
    place = msgspec.structs.replace(GOLDEN_PLACE, urls=urls, ingress=entrance, **members)
    found = render_objects(place, sets).services
    kept = [body for body in found if body["kind"] == "Ingress" or body["spec"]["type"] == "ExternalName"]
    return {f"{body['kind']}/{body['metadata']['name']}": body for body in kept}


def ways(body: dict[str, Any]) -> list[tuple[str, str, str, int]]:
    return [
        (f"{rule['host']}{path['path']}", path["pathType"], backend["name"], backend["port"]["number"])
        for rule in body["spec"]["rules"]
        for path in rule["http"]["paths"]
        for backend in [path["backend"]["service"]]
    ]


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: f"{path.parent.name}/{path.name.split('.')[0]}")
def test_request_becomes_these_ways_in(path: Path) -> None:
    kind = KINDS[path.parent.name]
    rendered = render(kind.podsets(read_submission(kind, path.read_bytes()).spec))
    want = path.with_name(path.name.replace(".request.", ".ingress."))
    assert json.loads(msgspec.json.encode(list(rendered.values()))) == json.loads(want.read_bytes())


def test_there_are_golden_ones_of_every_sort() -> None:
    assert {path.parent.name for path in REQUESTS} == {
        "distributed-inference",
        "inference-service",
        "training",
        "workspace",
    }


def test_a_url_leads_to_its_service_and_its_sign_in_to_us() -> None:
    rendered = render(podsets("training", exposedUrls=[{"container": 8080}]))
    assert list(rendered) == ["Service/golden-proxy", "Ingress/golden-url", "Ingress/golden-sign-in"]
    host = "golden-team-a.apps.example.com"
    assert ways(rendered["Ingress/golden-url"]) == [(f"{host}/", "Prefix", "golden-clusterip", 8080)]
    assert ways(rendered["Ingress/golden-sign-in"]) == [
        (f"{host}/.fairlead/sign-in", "Exact", "golden-proxy", 7421),
    ]
    asked = rendered["Ingress/golden-url"]["metadata"]["annotations"]
    assert asked[f"{NGINX}/auth-url"] == f"http://{ENTRANCE.server}:7420/url-access?url={host}"
    assert asked[f"{NGINX}/auth-response-headers"] == "Authorization,Cookie,X-Forwarded-User,X-Forwarded-Prefix"
    assert f"{NGINX}/auth-url" not in rendered["Ingress/golden-sign-in"]["metadata"]["annotations"]
    assert rendered["Service/golden-proxy"]["spec"]["externalName"] == ENTRANCE.server
    for body in rendered.values():
        assert body["metadata"]["labels"]["fairlead/workload-id"] == "w"
        assert body["spec"].get("ingressClassName", "nginx") == "nginx"


def test_urls_by_path_keep_their_prefix() -> None:
    rendered = render(podsets("training", exposedUrls=[{"container": 8080}]), BY_PATH)
    prefix = "apps.example.com/team-a/golden"
    assert ways(rendered["Ingress/golden-url"])[0][0] == prefix
    assert ways(rendered["Ingress/golden-sign-in"])[0][0] == f"{prefix}/.fairlead/sign-in"
    assert rendered["Ingress/golden-url"]["metadata"]["annotations"][f"{NGINX}/auth-url"].endswith(f"?url={prefix}")


def test_a_public_url_needs_no_check() -> None:
    rendered = render(podsets("training", exposedUrls=[{"container": 8080, "authorizationType": "public"}]))
    assert list(rendered) == ["Ingress/golden-url"]
    assert not any("auth" in name for name in rendered["Ingress/golden-url"]["metadata"]["annotations"])


def test_several_urls_are_distinguished() -> None:
    urls = [{"container": 8080}, {"container": 9090, "url": "https://tools.apps.example.com/board"}]
    rendered = render(podsets("training", exposedUrls=urls))
    assert ways(rendered["Ingress/golden-url-2"]) == [
        ("tools.apps.example.com/board", "Prefix", "golden-clusterip", 9090)
    ]
    assert len(ways(rendered["Ingress/golden-sign-in"])) == 2


@pytest.mark.parametrize(
    "url",
    [
        "https://bank.example.com/",
        "https://notapps.example.com",
        "https://apps.example.com/a/../b",
        "https://apps.example.com/a%2fb",
        "https://apps.example.com/a;b",
        "https://apps.example.com/.hidden",
        "https://a..apps.example.com",
    ],
)
def test_urls_of_others_and_ambiguous_ones_get_no_ingress(url: str) -> None:
    assert render(podsets("training", exposedUrls=[{"container": 8080, "url": url}])) == {}


def test_an_address_is_not_a_host_name() -> None:
    assert not msgspec.structs.replace(ENTRANCE, domain="10.0.0.1").can_expose(UrlRoute(host="10.0.0.1", port=80))


def test_without_the_setting_there_are_no_ingresses() -> None:
    assert render(podsets("training", exposedUrls=[{"container": 8080}]), entrance=None) == {}


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        ({}, ("golden-clusterip", 8000)),
        ({"autoscaling": {"minReplicas": 2, "maxReplicas": 2}}, ("golden-clusterip", 8000)),
        ({"autoscaling": {"minReplicas": 0, "maxReplicas": 1}}, ("golden-proxy", 7421)),
        (
            {"autoscaling": {"minReplicas": 1, "maxReplicas": 3, "metric": "concurrency", "metricThreshold": 4}},
            ("golden-proxy", 7421),
        ),
    ],
    ids=["one pod", "two pods", "may sleep", "scales"],
)
def test_what_is_counted_or_held_leads_to_us(spec: dict[str, Any], want: tuple[str, int]) -> None:
    port = {"container": 8000, "authorizationType": "authenticatedUsers"}
    rendered = render(podsets("inference-service", servingPort=port, **spec))
    [way] = ways(rendered["Ingress/golden-url"])
    assert way[2:] == want
    annotations = rendered["Ingress/golden-url"]["metadata"]["annotations"]
    is_asked = f"{NGINX}/auth-url" in annotations
    assert is_asked == (want[0] == "golden-clusterip"), "our proxy asks by itself"
    assert ("Ingress/golden-sign-in" in rendered) == is_asked
    assert annotations[f"{NGINX}/proxy-read-timeout"] == ("300" if is_asked else "3600")


def test_revisions_share_their_url() -> None:
    [podset] = podsets("inference-service", servingPort={"container": 8000})
    old, new = (
        msgspec.structs.replace(podset, role=f"main@{number}", revision=number, stage=stage)
        for number, stage in ((1, Stage.SERVING), (2, Stage.STARTING))
    )
    rendered = render((old, new))
    assert list(rendered) == ["Ingress/golden-url"]
    assert ways(rendered["Ingress/golden-url"])[0][2:] == ("golden-clusterip", 8000)


def test_what_knative_runs_leads_to_us() -> None:
    sets = podsets("inference-service", servingPort={"container": 8000})
    rendered = render(sets, launch=LaunchChoices(frozenset({"Service"})))
    assert ways(rendered["Ingress/golden-url"])[0][2:] == ("golden-proxy", 7421)


@pytest.mark.parametrize(
    ("is_tls", "may_sleep", "want"),
    [(False, False, "GRPC"), (True, False, "GRPC"), (False, True, "GRPC"), (True, True, "GRPCS")],
    ids=["to pods", "to pods, our server by TLS", "to us", "to us by TLS"],
)
def test_grpc(is_tls: bool, may_sleep: bool, want: str) -> None:
    scaling = {"minReplicas": 0 if may_sleep else 1, "maxReplicas": 1}
    sets = podsets("inference-service", servingPort={"container": 8000, "protocol": "grpc"}, autoscaling=scaling)
    rendered = render(sets, entrance=msgspec.structs.replace(ENTRANCE, is_tls=is_tls))
    assert rendered["Ingress/golden-url"]["metadata"]["annotations"][f"{NGINX}/backend-protocol"] == want


def test_a_server_with_a_certificate_is_asked_by_tls() -> None:
    entrance = msgspec.structs.replace(ENTRANCE, is_tls=True, has_certificate=True)
    rendered = render(podsets("training", exposedUrls=[{"container": 8080}]), entrance=entrance)
    annotations = rendered["Ingress/golden-url"]["metadata"]["annotations"]
    assert annotations[f"{NGINX}/auth-url"].startswith("https://")
    assert rendered["Ingress/golden-sign-in"]["metadata"]["annotations"] == {f"{NGINX}/backend-protocol": "HTTPS"}
    assert rendered["Ingress/golden-url"]["spec"]["tls"] == [{"hosts": ["golden-team-a.apps.example.com"]}]


class Written(msgspec.Struct, kw_only=True):
    """What the engine reads of the settings."""

    kubeconfig: str = ""
    group: str = "run.ai"
    keys_secret: str = ""
    allow: tuple[str, ...] = ()
    ingress_class: str = "nginx"
    ingress_server: str = "fairlead.fairlead.svc.cluster.local"
    ingress_tls: bool = False
    node_autoscaler: str = "auto"
    prometheus_url: str = ""
    loki_url: str = ""
    loki_tenant: str = ""
    data_dir: Path = Path("data")
    keep_logs_size: int = 0
    domain: str = "Apps.example.com"
    port: int | None = 7420
    proxy_port: int | None = 7421
    tls_certificate: str = ""


def test_the_setting() -> None:
    assert read_ingress(Written()) == ENTRANCE
    assert read_ingress(Written(ingress_class="")) is None


@pytest.mark.parametrize(
    ("members", "want"),
    [
        ({"ingress_class": "Two Words"}, "--ingress-class: 'Two Words'"),
        ({"ingress_server": "http://fairlead:7420"}, "--ingress-server: 'http://fairlead:7420'"),
        ({"ingress_server": "10.0.0.1"}, "--ingress-server: '10.0.0.1'"),
        ({"port": None}, "--port"),
        ({"proxy_port": 0}, "--proxy-port"),
    ],
    ids=["class", "an address with a scheme", "an address", "any port", "any port of the proxy"],
)
def test_what_no_ingress_can_say_is_refused(members: dict[str, Any], want: str) -> None:
    with pytest.raises(Refused, match=want):
        read_ingress(Written(**members))
