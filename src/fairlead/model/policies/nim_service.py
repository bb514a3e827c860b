"""The spec of NVIDIA NIM services as far as policies speak of it. There are no workloads of that kind here."""

from typing import Annotated, Literal

from msgspec import UNSET

from fairlead.model.spec.autoscaling import Autoscaling
from fairlead.model.spec.claims import ClaimInfo
from fairlead.model.spec.fields import Count32, FieldInfo, Maybe, Positive32, Spec
from fairlead.model.spec.pod_fields import PodFields


class NimUser(Spec, frozen=True, kw_only=True):
    run_as_uid: Annotated[Maybe[int], FieldInfo(text="The user that the container runs as.")] = UNSET
    run_as_gid: Annotated[Maybe[int], FieldInfo(text="The group that the container runs as.")] = UNSET


class NimAutoscaling(Autoscaling, frozen=True, kw_only=True):
    scale_window_seconds: Annotated[Maybe[Count32], FieldInfo(text="How long a metric is averaged.")] = UNSET


class MultiNode(Spec, frozen=True, kw_only=True):
    workers: Annotated[Maybe[Positive32], FieldInfo(text="The number of workers, without the leader.")] = UNSET


class NimServingPort(Spec, frozen=True, kw_only=True):
    service_type: Annotated[
        Maybe[Literal["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"]], FieldInfo(text="The type of service.")
    ] = UNSET
    port: Annotated[Maybe[Positive32], FieldInfo(text="The port of the API.")] = UNSET
    grpc_port: Annotated[Maybe[Positive32], FieldInfo(text="The port of gRPC.")] = UNSET
    metrics_port: Annotated[Maybe[Positive32], FieldInfo(text="The port of metrics.")] = UNSET
    expose_externally: Annotated[Maybe[bool], FieldInfo(text="Whether it has a URL outside of the cluster.")] = UNSET
    exposed_url: Annotated[Maybe[str], FieldInfo(text="That URL.")] = UNSET
    exposed_protocol: Annotated[Maybe[Literal["http", "grpc"]], FieldInfo(text="The protocol of the URL.")] = UNSET


class NimCache(Spec, frozen=True, kw_only=True):
    name: Annotated[Maybe[str], FieldInfo(text="The cache's name.")] = UNSET
    profile: Annotated[Maybe[str], FieldInfo(text="The model's profile in it.")] = UNSET


class NimClaim(Spec, frozen=True, kw_only=True):
    path: Annotated[Maybe[str], FieldInfo(text="Where it is mounted.")] = UNSET
    existing_pvc: Annotated[Maybe[bool], FieldInfo(text="Whether the claim exists already.")] = UNSET
    claim_name: Annotated[Maybe[str], FieldInfo(text="The claim's name.")] = UNSET
    read_only: Annotated[Maybe[bool], FieldInfo(text="Whether it can only be read.")] = UNSET
    claim_info: Annotated[Maybe[ClaimInfo], FieldInfo(text="The claim to create.")] = UNSET


class ModelStore(Spec, frozen=True, kw_only=True):
    nim_cache: Annotated[Maybe[NimCache], FieldInfo(text="A cache of models.")] = UNSET
    pvc: Annotated[Maybe[NimClaim], FieldInfo(text="A claim with models.")] = UNSET


class NimServiceSpec(PodFields, frozen=True, kw_only=True):
    replicas: Annotated[Maybe[Count32], FieldInfo(text="The number of pods.")] = UNSET
    multi_node: Annotated[Maybe[MultiNode], FieldInfo(text="Several pods per replica.")] = UNSET
    autoscaling: Annotated[Maybe[NimAutoscaling], FieldInfo(text="How the number of pods changes.")] = UNSET
    serving_port: Annotated[Maybe[NimServingPort], FieldInfo(text="How the service is reached.")] = UNSET
    model_store: Annotated[Maybe[ModelStore], FieldInfo(text="Where models are stored.")] = UNSET
    ngc_auth_secret: Annotated[Maybe[str], FieldInfo(text="The secret with the key of NVIDIA's registry.")] = UNSET
    security: Annotated[Maybe[NimUser], FieldInfo(text="The user of the container.")] = UNSET
    node_pools: Annotated[Maybe[tuple[str, ...]], FieldInfo(text="The node pools, in order.")] = UNSET
    priority_class: Annotated[Maybe[str], FieldInfo(text="The priority class.")] = UNSET
    preemptibility: Annotated[
        Maybe[Literal["preemptible", "non-preemptible"]], FieldInfo(text="Whether it can be evicted.")
    ] = UNSET
    category: Annotated[Maybe[str], FieldInfo(text="The category.")] = UNSET
