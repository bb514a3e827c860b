"""Labels and annotations of a workload's pods, and the display name of its owner."""

from typing import Annotated

from msgspec import UNSET

from fairlead.model.spec.fields import (
    ExcludeItem,
    ExcludeItemUnset,
    FieldInfo,
    FlagDeclaration,
    Maybe,
    Spec,
    Text63,
    UpTo253,
    UpTo10000,
)
from fairlead.model.syntax import Syntax


class Label(Spec, frozen=True, kw_only=True):
    name: Annotated[
        Maybe[Text63], FieldInfo(text="The label's key.", mandatory=True, part="name", syntax=Syntax.LABEL_KEY)
    ] = UNSET
    value: Annotated[Maybe[str], FieldInfo(text="The label's value.", part="value", syntax=Syntax.LABEL_VALUE)] = UNSET
    exclude: ExcludeItemUnset = UNSET


class Annotation(Spec, frozen=True, kw_only=True):
    name: Annotated[
        Maybe[Text63], FieldInfo(text="The annotation's key.", mandatory=True, part="name", syntax=Syntax.LABEL_KEY)
    ] = UNSET
    value: Annotated[Maybe[UpTo10000], FieldInfo(text="The annotation's value.", part="value")] = UNSET
    exclude: ExcludeItem = UNSET


Username = Annotated[
    Maybe[UpTo253],
    FieldInfo(
        text="The display name of the owner; it has no effect on access.",
        yaml="username",
        flags=(FlagDeclaration(name="--username"),),
        surface="older",
    ),
]
