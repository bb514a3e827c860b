"""The fields that the pods of every kind have. A kind adds its own fields, or nests this once per role.

Storage and security are not here, because they differ between kinds.
"""

from collections.abc import Iterator
from functools import cache
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta

from fairlead.model.spec.compute import Compute
from fairlead.model.spec.environment import ImagePullPolicy, ImagePullSecret, Variable
from fairlead.model.spec.fields import (
    Field,
    FieldInfo,
    FlagDeclaration,
    Maybe,
    Spec,
    Text,
    Text253,
    Text4096,
    Text10000,
    fields_of,
    is_given,
)
from fairlead.model.spec.metadata import Annotation, Label
from fairlead.model.spec.network import Probes
from fairlead.model.spec.placement import NodeAffinityRequired, PodAffinity, Toleration
from fairlead.model.syntax import Syntax


class PodFields(Spec, frozen=True, kw_only=True):
    image: Annotated[
        Maybe[Text253],
        FieldInfo(
            text="The container image.",
            is_common=True,
            mandatory=True,
            yaml="image",
            syntax=Syntax.IMAGE,
            flags=(FlagDeclaration(name="--image", short="-i"),),
        ),
    ] = UNSET
    image_pull_policy: Annotated[
        Maybe[ImagePullPolicy],
        FieldInfo(
            text="When the image is pulled.",
            default_text="Always with the tag latest or none, otherwise IfNotPresent",
            yaml="imagePullPolicy",
            flags=(FlagDeclaration(name="--image-pull-policy"),),
        ),
    ] = UNSET
    image_pull_secrets: Annotated[
        Maybe[Annotated[tuple[ImagePullSecret | None, ...], Meta(max_length=1000)]],
        FieldInfo(
            text="Secrets for the registry of the image.",
            key="name",
            flags=(FlagDeclaration(name="--image-pull-secret"),),
        ),
    ] = UNSET
    command: Annotated[
        Maybe[Text10000],
        FieldInfo(
            text="The command to run instead of the image's entry point: one string, split as a shell splits it.",
            is_common=True,
            default_text="the image's entry point",
            yaml="command",
            flags=(
                FlagDeclaration(
                    name="--command",
                    short="-c",
                    form="words",
                    help="Use the words after -- as the command; without this flag they are arguments.",
                ),
            ),
        ),
    ] = UNSET
    args: Annotated[
        Maybe[Text10000],
        FieldInfo(
            text="The arguments of the command: one string, split as a shell splits it.",
            is_common=True,
            yaml="arguments",
            yaml_also=("args",),
            flags=(
                FlagDeclaration(
                    name="--args", form="words", help="The arguments as one string; or write them after --."
                ),
            ),
        ),
    ] = UNSET
    working_dir: Annotated[
        Maybe[Text4096],
        FieldInfo(
            text="The working directory of the command.",
            default_text="the image's",
            yaml="workingDir",
            syntax=Syntax.ABSOLUTE_PATH,
            flags=(FlagDeclaration(name="--working-dir"),),
        ),
    ] = UNSET
    create_home_dir: Annotated[
        Maybe[bool],
        FieldInfo(
            text="Creates a home directory for the process.",
            default_text="true if the user comes from the identity token, otherwise false",
            yaml="createHomeDir",
            flags=(FlagDeclaration(name="--create-home-dir"),),
        ),
    ] = UNSET
    environment_variables: Annotated[
        Maybe[Annotated[tuple[Variable | None, ...], Meta(max_length=1000)]],
        FieldInfo(
            text="Environment variables, each with one source.",
            is_common=True,
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
                    help="A variable from one of your credentials: NAME=CREDENTIAL,key=KEY.",
                ),
                FlagDeclaration(name="--env-item", form="item", parts=("name", "value", "description", "exclude")),
            ),
        ),
    ] = UNSET
    compute: Annotated[Maybe[Compute], FieldInfo(text="The resources that each pod requests.")] = UNSET
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
            text="The type of nodes that may run the pods, as administrators label them.",
            yaml="nodeType",
            syntax=Syntax.LABEL_VALUE,
            flags=(FlagDeclaration(name="--node-type"),),
        ),
    ] = UNSET
    node_affinity_required: Annotated[
        Maybe[NodeAffinityRequired], FieldInfo(text="The nodes that may run the pods, by label.")
    ] = UNSET
    pod_affinity: Annotated[
        Maybe[PodAffinity], FieldInfo(text="Places the pods of the workload near each other.", yaml="podAffinity")
    ] = UNSET
    tolerations: Annotated[
        Maybe[Annotated[tuple[Toleration | None, ...], Meta(max_length=1000)]],
        FieldInfo(
            text="The node taints that the pods tolerate.",
            key="name",
            yaml="tolerations",
            flags=(FlagDeclaration(name="--toleration"),),
        ),
    ] = UNSET
    probes: Annotated[Maybe[Probes], FieldInfo(text="Health probes of the container.")] = UNSET


def pods_of(spec: msgspec.Struct, path: str = "") -> Iterator[tuple[PodFields, str]]:
    """Every description of pods in a spec, with its path: the spec itself, and each of its roles."""
    if isinstance(spec, PodFields):
        yield spec, path
    for field in _roles_of(spec.__class__):
        inner = getattr(spec, field.attribute)
        if isinstance(inner, PodFields):
            yield inner, f"{path}.{field.rest}" if path else field.rest


@cache
def _roles_of(struct: type[msgspec.Struct]) -> tuple[Field, ...]:
    """The members of a spec that describe pods of another role."""
    return tuple(
        field for field in fields_of(struct) if field.struct is not None and issubclass(field.struct, PodFields)
    )


def has_security_or_storage(spec: msgspec.Struct) -> bool:
    """Whether a spec or one of its roles says anything about user and privileges, or mounts anything."""
    return any(is_given(getattr(pod, member, None)) for pod, _ in pods_of(spec) for member in ("security", "storage"))
