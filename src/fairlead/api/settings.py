"""Settings of the tenant and of its security, in the shapes of 2.24.

They are facts of this installation: the operator sets them when the server is started, so a request can read them and
can confirm a value, but not change one.
"""

from collections.abc import Mapping

import msgspec
from starlette.responses import Response

from fairlead.api.http.body import read_body, receive_json
from fairlead.api.http.crud import failing
from fairlead.api.http.operation import Call, Operation, Parameter, RequestBody, as_json
from fairlead.api.http.shapes import Shape
from fairlead.model.errors import Invalid, NotFound, Refused
from fairlead.model.spec.fields import Spec

#: Key → label, description, and whether this installation has it.
_TENANT: Mapping[str, tuple[str, str, bool]] = {
    "cpuQuota": ("CPU quota", "Projects and departments have quotas of CPU and memory", True),
    "overQuotaPriority": ("Over quota weight", "Projects and departments have over-quota weights", True),
    "policies": ("Policies", "Policies apply to submissions", True),
    "dataVolumes": ("Data volumes", "Data can be shared between projects", True),
    "templates": ("Templates", "Workloads can be made from templates", True),
    "distributedTraining": ("Distributed training", "Trainings can have several workers", True),
    "modelServing": ("Model serving", "Workloads can serve models", True),
    "nodeAffinity": ("Node affinity", "Projects can be bound to types of nodes", True),
    "registries": ("Registries", "Images can be chosen from registries", False),
    "reports": ("Reports", "Reports of consumption are made in the background", False),
    "nimServices": ("NIM services", "NVIDIA NIM services are workloads", False),
}
#: Key → its value in the shape that 2.24 has for this key. Sessions of browsers do not end because nobody uses them.
_SECURITY: Mapping[str, dict[str, object]] = {
    "autoRedirectSSO": {"enabled": False},
    "browserSessionTimeout": {"idleTimeout": None},
    "logoutRedirectUri": {"uri": ""},
}


class SettingView(Shape):
    key: str
    label: str
    description: str
    value: str
    active: bool
    category: str
    type: str
    source: str


class SettingChanged(Shape):
    msg: str


class SettingUpdate(Spec, frozen=True, kw_only=True):
    key: str
    value: bool | str | None = None


async def get_settings(call: Call) -> Response:
    return as_json(
        [
            SettingView(
                key=key,
                label=label,
                description=text,
                value=str(has).lower(),
                active=has,
                category="general",
                type="boolean",
                source="installation",
            )
            for key, (label, text, has) in _TENANT.items()
        ]
    )


async def get_setting(call: Call) -> Response:
    """True if the installation has the feature; a feature that it does not know is off."""
    return as_json(_TENANT.get(call.path["settingKey"], ("", "", False))[2])


async def update_setting(call: Call) -> Response:
    update = await receive_json(call, SettingUpdate)
    if update.key not in _TENANT:
        raise NotFound(f"There is no setting {update.key[:60]}; GET /v1/k8s/setting lists all settings")
    has = _TENANT[update.key][2]
    if update.value not in (has, str(has).lower()):
        raise Refused(f"Setting {update.key} was not changed: it is {str(has).lower()} in this version of Fairlead")
    return as_json(SettingChanged(msg=f"{update.key} is {str(has).lower()}"))


async def get_security_settings(call: Call) -> Response:
    return as_json(_SECURITY)


def _security_key(call: Call) -> str:
    key = call.path["key"]
    if key not in _SECURITY:
        raise NotFound(f"There is no security setting {key[:60]}; known are {', '.join(_SECURITY)}")
    return key


async def get_security_setting(call: Call) -> Response:
    return as_json(_SECURITY[_security_key(call)])


async def update_security_setting(call: Call) -> Response:
    key = _security_key(call)
    try:
        given = msgspec.json.decode(await read_body(call.request, "application/json"))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Invalid(f"The body is not valid JSON: {error}") from error
    if given != _SECURITY[key]:
        raise Refused(f"Security setting {key} was not changed: the operator sets it when the server is started")
    return as_json(given)


_FAILURES = failing(401, 403, 500, 503)
_KEY = Parameter(name="key", place="path", schema={"type": "string", "enum": list(_SECURITY)})
SETTING_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="GET",
        path="/v1/k8s/setting",
        id="getTenantSettings",
        tag="Settings",
        summary="List the features of this installation; the answer is an array",
        run=get_settings,
        needs="clusters:read",
        answers={**_FAILURES, 200: list[SettingView]},
    ),
    Operation(
        method="PUT",
        path="/v1/k8s/setting",
        id="updateTenantSetting",
        tag="Settings",
        summary="Confirm a setting; another value is refused",
        run=update_setting,
        needs="settings:update",
        body=RequestBody(schema=SettingUpdate),
        answers={**_FAILURES, **failing(400, 404), 200: SettingChanged},
    ),
    Operation(
        method="GET",
        path="/v1/k8s/setting/{settingKey}",
        id="getTenantSettingsByKey",
        tag="Settings",
        summary="Get whether this installation has a feature",
        run=get_setting,
        needs="clusters:read",
        parameters=(Parameter(name="settingKey", place="path", schema={"type": "string"}),),
        answers={**_FAILURES, 200: {"type": "boolean"}},
    ),
    Operation(
        method="GET",
        path="/api/v1/security/settings",
        id="get_security_settings",
        tag="Settings",
        summary="Get all security settings",
        run=get_security_settings,
        needs="settings:read",
        answers={**_FAILURES, 200: {"type": "object"}},
    ),
    Operation(
        method="GET",
        path="/api/v1/security/settings/{key}",
        id="get_security_setting_by_key",
        tag="Settings",
        summary="Get a security setting",
        run=get_security_setting,
        needs="settings:read",
        parameters=(_KEY,),
        answers={**_FAILURES, **failing(404), 200: {"type": "object"}},
    ),
    Operation(
        method="PUT",
        path="/api/v1/security/settings/{key}",
        id="update_security_setting_by_key",
        tag="Settings",
        summary="Confirm a security setting; another value is refused",
        run=update_security_setting,
        needs="settings:update",
        parameters=(_KEY,),
        body=RequestBody(schema={"type": "object"}),
        answers={**_FAILURES, **failing(400, 404), 200: {"type": "object"}},
    ),
)
