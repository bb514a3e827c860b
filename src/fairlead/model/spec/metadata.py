"""Labels and annotations of a workload's pods, and the owner's name for people."""

from typing import Annotated

from msgspec import UNSET

from fairlead.model.spec.fields import (
    About,
    ExcludeItem,
    ExcludeItemUnset,
    Flag,
    Maybe,
    Spec,
    Text63,
    UpTo253,
    UpTo10000,
)


class Label(Spec, frozen=True, kw_only=True):
    name: Annotated[Maybe[Text63], About(text="The label's key.", mandatory=True, part="name")] = UNSET
    value: Annotated[Maybe[str], About(text="The label's value.", part="value")] = UNSET
    exclude: ExcludeItemUnset = UNSET


class Annotation(Spec, frozen=True, kw_only=True):
    name: Annotated[Maybe[Text63], About(text="The annotation's key.", mandatory=True, part="name")] = UNSET
    value: Annotated[Maybe[UpTo10000], About(text="The annotation's value.", part="value")] = UNSET
    exclude: ExcludeItem = UNSET


Username = Annotated[
    Maybe[UpTo253],
    About(
        text="The owner's name for people; it decides nothing about access.",
        yaml="username",
        flags=(Flag(name="--username"),),
        surface="older",
    ),
]
