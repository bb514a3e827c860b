"""How a pod is reached from outside, and how its readiness is probed."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta

from fairlead.model.spec.fields import (
    Count32,
    ExcludeItem,
    ExcludeItemUnset,
    FieldInfo,
    FlagDeclaration,
    Given,
    Int32,
    Maybe,
    PortNumber,
    Positive32,
    Spec,
    Text63,
    Text253,
    UpTo63,
    UpTo253,
    UpTo2048,
)
from fairlead.model.syntax import Syntax

ServiceType = Literal["LoadBalancer", "NodePort", "ClusterIP"]
UrlAuthorization = Literal["authenticatedUsers", "authorizedUsers", "authorizedGroups"]
ProbeScheme = Literal["HTTP", "HTTPS"]


class Port(Spec, frozen=True, kw_only=True):
    name: Annotated[
        Maybe[Text63],
        FieldInfo(text="Identifies this port when lists are merged and when policies lock items.", part="name"),
    ] = UNSET
    container: Annotated[
        Maybe[PortNumber],
        FieldInfo(text="The port that the process listens on.", mandatory=True, yaml="container", part="container"),
    ] = UNSET
    service_type: Annotated[
        Maybe[ServiceType],
        FieldInfo(text="How the port is exposed.", mandatory=True, yaml="serviceType", part="service-type"),
    ] = UNSET
    external: Annotated[
        Maybe[Int32],
        FieldInfo(text="The external port.", default_text="chosen automatically", yaml="external", part="external"),
    ] = UNSET
    tool_type: Annotated[
        Maybe[UpTo63], FieldInfo(text="The type of the tool that serves it.", yaml="toolType", part="tool-type")
    ] = UNSET
    tool_name: Annotated[
        Maybe[UpTo253], FieldInfo(text="The display name of the tool.", yaml="toolName", part="tool-name")
    ] = UNSET
    exclude: ExcludeItem = UNSET


class ExposedUrl(Spec, frozen=True, kw_only=True):
    name: Annotated[
        Maybe[Text253],
        FieldInfo(text="Identifies this URL when lists are merged and when policies lock items.", part="name"),
    ] = UNSET
    container: Annotated[
        Maybe[Int32],
        FieldInfo(text="The port that the process listens on.", mandatory=True, yaml="container", part="container"),
    ] = UNSET
    url: Annotated[
        Maybe[UpTo2048],
        FieldInfo(text="The URL.", default_text="generated", yaml="url", part="url", syntax=Syntax.OWN_URL),
    ] = UNSET
    authorization_type: Annotated[
        Maybe[UrlAuthorization],
        FieldInfo(
            text="Who may open it: every signed-in user, the listed users, or the listed groups.",
            default_text="by the given list; without one, every signed-in user",
            part="authorization-type",
        ),
    ] = UNSET
    authorized_users: Annotated[
        Maybe[Annotated[tuple[UpTo253, ...], Meta(max_length=1000)]],
        FieldInfo(text="Users and service accounts who may open it.", yaml="authorizedUsers", part="authusers"),
    ] = UNSET
    authorized_groups: Annotated[
        Maybe[Annotated[tuple[UpTo253, ...], Meta(max_length=1000)]],
        FieldInfo(text="Groups whose members may open it.", yaml="authorizedGroups", part="authgroups"),
    ] = UNSET
    tool_type: Annotated[
        Maybe[str], FieldInfo(text="The type of the tool that serves it.", yaml="toolType", part="tool-type")
    ] = UNSET
    tool_name: Annotated[
        Maybe[UpTo253], FieldInfo(text="The display name of the tool.", yaml="toolName", part="tool-name")
    ] = UNSET
    exclude: ExcludeItemUnset = UNSET


class RelatedUrl(Spec, frozen=True, kw_only=True):
    name: Annotated[
        Maybe[UpTo63],
        FieldInfo(text="Identifies this URL when lists are merged and when policies lock items.", part="name"),
    ] = UNSET
    url: Annotated[Maybe[UpTo2048], FieldInfo(text="The URL.", mandatory=True, part="url", syntax=Syntax.WEB_URL)] = (
        UNSET
    )
    type: Annotated[
        Maybe[UpTo63], FieldInfo(text="The service at this URL, such as wandb.", mandatory=True, part="type")
    ] = UNSET
    exclude: ExcludeItem = UNSET


class HttpGet(Spec, frozen=True, kw_only=True):
    path: Annotated[
        Maybe[
            Annotated[
                str,
                Meta(
                    max_length=2048,
                    pattern=r"^(/[a-zA-Z0-9\-_./]*)?\Z",
                    extra_json_schema={"pattern": r"^(\x2F[a-zA-Z0-9\-_.\x2F]*)?$"},
                    extra={
                        "rule": "begin with a slash, then use letters, digits, slashes, dots, hyphens and underscores, "
                        "such as /healthz"
                    },
                ),
            ]
        ],
        FieldInfo(
            text="The path of the request.", default="/", origin="prose", part="path", older="it is read from the root"
        ),
    ] = UNSET
    port: Annotated[Maybe[PortNumber], FieldInfo(text="The port of the container.", mandatory=True, part="port")] = (
        UNSET
    )
    host: Annotated[
        Maybe[
            Annotated[
                str,
                Meta(
                    max_length=253,
                    pattern=r"^[A-Za-z0-9._:\[\]-]*\Z",
                    extra_json_schema={"format": "hostname", "pattern": None},
                    extra={"rule": "give the name of a host, such as my-service.example.com"},
                ),
            ]
        ],
        FieldInfo(
            text="The Host header of the request; the request always goes to the pod itself.",
            default_text="the pod's address",
            part="host",
        ),
    ] = UNSET
    scheme: Annotated[
        Maybe[ProbeScheme], FieldInfo(text="The protocol.", default="HTTP", origin="prose", part="scheme")
    ] = UNSET


class ProbeHandler(Spec, frozen=True, kw_only=True):
    http_get: Annotated[Given[HttpGet], FieldInfo(text="Probes with HTTP GET.", mandatory=True)] = UNSET


class Probe(Spec, frozen=True, kw_only=True):
    initial_delay_seconds: Annotated[
        Maybe[Count32],
        FieldInfo(
            text="The time between the start and the first probe.",
            unit="seconds",
            default=0,
            origin="kubernetes",
            part="initial-delay",
        ),
    ] = UNSET
    period_seconds: Annotated[
        Maybe[Positive32],
        FieldInfo(text="The time between probes.", unit="seconds", default=10, origin="kubernetes", part="period"),
    ] = UNSET
    timeout_seconds: Annotated[
        Maybe[Positive32],
        FieldInfo(text="How long a response may take.", unit="seconds", default=1, origin="kubernetes", part="timeout"),
    ] = UNSET
    success_threshold: Annotated[
        Maybe[Positive32],
        FieldInfo(
            text="How many successful probes in a row make it ready.",
            default=1,
            origin="kubernetes",
            part="success-threshold",
        ),
    ] = UNSET
    failure_threshold: Annotated[
        Maybe[Positive32],
        FieldInfo(
            text="How many failed probes in a row make it unready.",
            default=3,
            origin="kubernetes",
            part="failure-threshold",
        ),
    ] = UNSET
    handler: Annotated[Maybe[ProbeHandler], FieldInfo(text="The request to make.", mandatory=True)] = UNSET


class Probes(Spec, frozen=True, kw_only=True):
    readiness: Annotated[
        Maybe[Probe],
        FieldInfo(
            text="When the container is ready for traffic.",
            yaml="readinessProbe",
            flags=(FlagDeclaration(name="--readiness-probe", form="members"),),
        ),
    ] = UNSET


Ports = Annotated[
    Maybe[Annotated[tuple[Port | None, ...], Meta(max_length=1000)]],
    FieldInfo(
        text="Ports through which the pods are reached.",
        key="name",
        unique=("external+serviceType",),
        yaml="ports",
        flags=(FlagDeclaration(name="--port"),),
    ),
]
ExposedUrls = Annotated[
    Maybe[Annotated[tuple[ExposedUrl | None, ...], Meta(max_length=1000)]],
    FieldInfo(
        text="URLs through which the pods are reached.",
        is_common=True,
        key="name",
        unique=("url",),
        yaml="exposedUrls",
        yaml_kinds="WTDIJ",
        flags=(FlagDeclaration(name="--external-url", aliases=("--exposed-url",)),),
    ),
]
RelatedUrls = Annotated[
    Maybe[Annotated[tuple[RelatedUrl | None, ...], Meta(max_length=1000)]],
    FieldInfo(
        text="External pages that belong to the workload and are shown with it.",
        key="name",
        flags=(FlagDeclaration(name="--related-url"),),
    ),
]
