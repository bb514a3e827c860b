"""What runs in the container: image, pull secrets, environment variables."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta

from fairlead.model.records.assets import Reference
from fairlead.model.spec.fields import (
    NAME_RULE,
    NO_SUCH_NAME,
    ExcludeItem,
    ExcludeItemUnset,
    FieldInfo,
    Given,
    Maybe,
    ObjectName253,
    Spec,
    Text63,
    Text253,
    Text10000,
    UpTo250,
    UpTo10000,
)
from fairlead.model.syntax import Syntax

ImagePullPolicy = Literal["Always", "Never", "IfNotPresent"]


class SecretKey(Spec, frozen=True, kw_only=True):
    name: Annotated[
        Maybe[ObjectName253], FieldInfo(text="The secret's name.", mandatory=True, part="secret", older=NO_SUCH_NAME)
    ] = UNSET
    key: Annotated[
        Maybe[Text63], FieldInfo(text="The key in the object.", mandatory=True, part="key", syntax=Syntax.OBJECT_KEY)
    ] = UNSET


class ConfigMapKey(Spec, frozen=True, kw_only=True):
    name: Annotated[
        Maybe[ObjectName253],
        FieldInfo(text="The config map's name.", mandatory=True, part="config-map", older=NO_SUCH_NAME),
    ] = UNSET
    key: Annotated[
        Maybe[Text63], FieldInfo(text="The key in the object.", mandatory=True, part="key", syntax=Syntax.OBJECT_KEY)
    ] = UNSET


class UserCredentialKey(Spec, frozen=True, kw_only=True):
    name: Annotated[
        Maybe[Text253],
        FieldInfo(text="The credential's name; only its creator can use it.", mandatory=True, part="credential"),
    ] = UNSET
    key: Annotated[
        Maybe[Text63], FieldInfo(text="The key in the object.", mandatory=True, part="key", syntax=Syntax.OBJECT_KEY)
    ] = UNSET


class PodFieldRef(Spec, frozen=True, kw_only=True):
    path: Annotated[
        Maybe[Text10000],
        FieldInfo(text="The field of the pod, such as metadata.name.", mandatory=True, part="path"),
    ] = UNSET


class Variable(Spec, frozen=True, kw_only=True):
    """An environment variable with exactly one of five sources."""

    name: Annotated[Maybe[Text63], FieldInfo(text="The variable's name.", mandatory=True, part="name")] = UNSET
    value: Annotated[Maybe[UpTo10000], FieldInfo(text="Its value.", part="value", source=1)] = UNSET
    secret: Annotated[
        Maybe[SecretKey], FieldInfo(text="Takes the value from a secret.", refers=Reference.SECRET, source=2)
    ] = UNSET
    config_map: Annotated[
        Maybe[ConfigMapKey],
        FieldInfo(text="Takes the value from a config map.", refers=Reference.CONFIG_MAP, source=3),
    ] = UNSET
    pod_field_ref: Annotated[
        Maybe[PodFieldRef], FieldInfo(text="Takes the value from a field of the pod.", source=5)
    ] = UNSET
    user_credential: Annotated[
        Maybe[UserCredentialKey],
        FieldInfo(
            text="Takes the value from a user credential of the caller.", refers=Reference.USER_CREDENTIAL, source=4
        ),
    ] = UNSET
    description: Annotated[Maybe[UpTo250], FieldInfo(text="What it is for.", part="description")] = UNSET
    exclude: ExcludeItemUnset = UNSET


class ImagePullSecret(Spec, frozen=True, kw_only=True):
    name: Annotated[
        Given[
            Annotated[
                str,
                Meta(
                    max_length=253,
                    pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?\Z",
                    extra_json_schema={"pattern": "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"},
                    extra={"rule": NAME_RULE},
                ),
            ]
        ],
        FieldInfo(
            text="The secret with the registry's credentials.",
            mandatory=True,
            part="name",
            refers=Reference.SECRET,
            refers_if=("user_credential", Reference.USER_CREDENTIAL),
            older=NO_SUCH_NAME,
        ),
    ] = UNSET
    user_credential: Annotated[
        Maybe[bool],
        FieldInfo(
            text="True if the secret is a user credential of the caller.",
            default=False,
            origin="ours",
            part="user-credential",
        ),
    ] = UNSET
    exclude: ExcludeItem = UNSET
