"""The older routes of tokens and storage classes, and the list of all deprecated routes."""

import msgspec
from starlette.responses import Response

from fairlead.api.deprecated.metrics import DEPRECATED_METRICS_OPERATIONS
from fairlead.api.deprecated.paths import BASE, FAILURES, check_cluster, deprecated, flag
from fairlead.api.deprecated.projects import DEPRECATED_OWNER_OPERATIONS
from fairlead.api.http.body import read_body, read_json
from fairlead.api.http.errors import Error
from fairlead.api.http.operation import NO_CACHE, Call, Operation, Parameter, RequestBody, as_json
from fairlead.api.http.shapes import Shape
from fairlead.api.people.auth import issue
from fairlead.control.people.authentication import Authenticator
from fairlead.control.people.tokens import Grant
from fairlead.model.records.assets import STORAGE_CLASSES
from fairlead.model.spec.fields import Spec


class AppTokenRequest(Spec, frozen=True, kw_only=True):
    """A service account: its client id (`id` or `name`) and its secret."""

    id: str
    name: str
    secret: str


class AppTokens(msgspec.Struct):
    access_token: str
    id_token: str


class StorageClassNames(Shape):
    storage_classes: tuple[str, ...]


async def get_storage_class_names(call: Call) -> Response:
    check_cluster(call)
    return as_json(StorageClassNames(storage_classes=tuple(STORAGE_CLASSES)))


def deprecated_operations(authenticator: Authenticator) -> tuple[Operation, ...]:
    """All routes of the older API."""

    async def grant_app_token(call: Call) -> Response:
        credentials = read_json(AppTokenRequest, await read_body(call.request, "application/json"))
        grant = Grant(
            grant_type="app_token", client_id=credentials.name or credentials.id, client_secret=credentials.secret
        )
        tokens = await issue(call, authenticator, grant)
        return as_json(AppTokens(tokens.access_token, tokens.id_token), headers=NO_CACHE)

    return (
        *DEPRECATED_OWNER_OPERATIONS,
        *DEPRECATED_METRICS_OPERATIONS,
        deprecated(
            method="POST",
            path="/v1/k8s/auth/oauth/apptoken",
            id="app_token",
            summary="Get tokens for a service account",
            run=grant_app_token,
            body=RequestBody(schema=AppTokenRequest),
            answers={200: AppTokens, 400: Error, 500: Error, 503: Error},
            is_public=True,
            is_sign_in=True,
        ),
        deprecated(
            method="GET",
            path=f"{BASE}/{{uuid}}/storage-classes",
            id="V1GetStorageClasses",
            summary="List the names of storage classes",
            run=get_storage_class_names,
            needs="storage-classes:read",
            parameters=(
                Parameter(name="uuid", place="path", schema={"type": "string", "format": "uuid"}),
                flag("includeNone"),
            ),
            answers={**FAILURES, 200: StorageClassNames},
        ),
    )
