"""The members that the pods of every kind have in common; a kind adds its own beside them, or nests this per role.

Storage and security come in two widths, so they are members of what inherits from here.
"""

from collections.abc import Iterator
from typing import Annotated, Any

from msgspec import UNSET, Meta

from fairlead.model.spec.compute import Compute
from fairlead.model.spec.environment import ImagePullPolicy, ImagePullSecret, Variable
from fairlead.model.spec.fields import (
    FieldInfo,
    FlagDeclaration,
    Maybe,
    Spec,
    Text,
    Text253,
    Text4096,
    Text10000,
    fields_of,
)
from fairlead.model.spec.metadata import Annotation, Label
from fairlead.model.spec.network import Probes
from fairlead.model.spec.placement import NodeAffinityRequired, PodAffinity, Toleration


class PodFields(Spec, frozen=True, kw_only=True):
    image: Annotated[
        Maybe[Text253],
        FieldInfo(
            text="The container image.",
            mandatory=True,
            yaml="image",
            flags=(FlagDeclaration(name="--image", short="-i"),),
        ),
    ] = UNSET
    image_pull_policy: Annotated[
        Maybe[ImagePullPolicy],
        FieldInfo(
            text="When the image is fetched anew.",
            default_text="Always with the tag latest or none, otherwise IfNotPresent",
            yaml="imagePullPolicy",
            flags=(FlagDeclaration(name="--image-pull-policy"),),
        ),
    ] = UNSET
    image_pull_secrets: Annotated[
        Maybe[Annotated[tuple[ImagePullSecret | None, ...], Meta(max_length=1000)]],
        FieldInfo(
            text="Secrets that open the image's registry.",
            key="name",
            flags=(FlagDeclaration(name="--image-pull-secret"),),
        ),
    ] = UNSET
    command: Annotated[
        Maybe[Text10000],
        FieldInfo(
            text="The program to start instead of the image's own, one text that is split as a shell splits it.",
            default_text="the image's entry point",
            yaml="command",
            flags=(
                FlagDeclaration(
                    name="--command",
                    short="-c",
                    form="words",
                    help="The words after -- replace the image's entry point; without this they are arguments.",
                ),
            ),
        ),
    ] = UNSET
    args: Annotated[
        Maybe[Text10000],
        FieldInfo(
            text="The program's arguments, one text that is split as a shell splits it.",
            yaml="arguments",
            yaml_also=("args",),
            flags=(
                FlagDeclaration(name="--args", form="words", help="Arguments as one text; or write them after --."),
            ),
        ),
    ] = UNSET
    working_dir: Annotated[
        Maybe[Text4096],
        FieldInfo(
            text="The folder in which the program starts.",
            default_text="the image's",
            yaml="workingDir",
            flags=(FlagDeclaration(name="--working-dir"),),
        ),
    ] = UNSET
    create_home_dir: Annotated[
        Maybe[bool],
        FieldInfo(
            text="Gives the process a home folder of its own.",
            default_text="true when the user comes from the identity token, otherwise false",
            yaml="createHomeDir",
            flags=(FlagDeclaration(name="--create-home-dir"),),
        ),
    ] = UNSET
    environment_variables: Annotated[
        Maybe[Annotated[tuple[Variable | None, ...], Meta(max_length=1000)]],
        FieldInfo(
            text="Environment variables, each from one source.",
            key="name",
            yaml="environment",
            flags=(
                FlagDeclaration(
                    name="--environment-variable",
                    short="-e",
                    aliases=("--env",),
                    role_aliases=("--environment",),
                    form="pair",
                    pair=("name", "value"),
                ),
                FlagDeclaration(
                    name="--env-secret",
                    form="pair",
                    pair=("name", "secret.name", "secret.key"),
                    help="A variable from a secret: NAME=SECRET,key=KEY.",
                ),
                FlagDeclaration(
                    name="--env-config-map",
                    form="pair",
                    pair=("name", "configMap.name", "configMap.key"),
                    help="A variable from a config map: NAME=CONFIGMAP,key=KEY.",
                ),
                FlagDeclaration(
                    name="--env-pod-field-ref",
                    form="pair",
                    pair=("name", "podFieldRef.path"),
                    help="A variable from a field of the pod: NAME=metadata.name.",
                ),
                FlagDeclaration(
                    name="--env-my-credentials",
                    form="pair",
                    pair=("name", "userCredential.name", "userCredential.key"),
                    help="A variable from a credential of yours: NAME=CREDENTIAL,key=KEY.",
                ),
                FlagDeclaration(name="--env-item", form="item", parts=("name", "value", "description", "exclude")),
            ),
        ),
    ] = UNSET
    compute: Annotated[Maybe[Compute], FieldInfo(text="What each pod asks of its node.")] = UNSET
    labels: Annotated[
        Maybe[Annotated[tuple[Label | None, ...], Meta(max_length=1000)]],
        FieldInfo(
            text="Labels of the pods.",
            key="name",
            yaml="labels",
            flags=(
                FlagDeclaration(name="--label", form="pair", pair=("name", "value")),
                FlagDeclaration(name="--label-item", form="item"),
            ),
        ),
    ] = UNSET
    annotations: Annotated[
        Maybe[Annotated[tuple[Annotation | None, ...], Meta(max_length=1000)]],
        FieldInfo(
            text="Annotations of the pods.",
            key="name",
            yaml="annotations",
            flags=(
                FlagDeclaration(name="--annotation", form="pair", pair=("name", "value")),
                FlagDeclaration(name="--annotation-item", form="item"),
            ),
        ),
    ] = UNSET
    node_type: Annotated[
        Maybe[Text],
        FieldInfo(
            text="The group of nodes, as administrators label them, that may take the pods.",
            yaml="nodeType",
            flags=(FlagDeclaration(name="--node-type"),),
        ),
    ] = UNSET
    node_affinity_required: Annotated[
        Maybe[NodeAffinityRequired], FieldInfo(text="Which nodes may take the pods, by their labels.")
    ] = UNSET
    pod_affinity: Annotated[
        Maybe[PodAffinity], FieldInfo(text="Places the workload's pods near each other.", yaml="podAffinity")
    ] = UNSET
    tolerations: Annotated[
        Maybe[Annotated[tuple[Toleration | None, ...], Meta(max_length=1000)]],
        FieldInfo(
            text="Taints of nodes that the pods put up with.",
            key="name",
            yaml="tolerations",
            flags=(FlagDeclaration(name="--toleration"),),
        ),
    ] = UNSET
    probes: Annotated[Maybe[Probes], FieldInfo(text="How the container's health is asked for.")] = UNSET


def pods_of(spec: Any, path: str = "") -> Iterator[tuple[PodFields, str]]:
    """Every description of pods in a spec, with its path: the spec itself, and those of its roles."""
    if isinstance(spec, PodFields):
        yield spec, path
    for field in fields_of(spec.__class__):
        inner = getattr(spec, field.attribute)
        if isinstance(inner, PodFields):
            yield inner, f"{path}.{field.rest}" if path else field.rest
