"""Features of 2.24 that this installation lacks, as a table of their routes.

A list is empty, one of its items does not exist, and a change is refused with the reason. So a script learns what is
missing from the answer, as it does from an installation of 2.24 whose administrator has not enabled the feature.
"""

from collections.abc import Iterator
from typing import NamedTuple

from starlette.responses import Response

from fairlead.api.http.crud import failing
from fairlead.api.http.operation import Call, Handler, Operation, Parameter, RequestBody, Schema, as_json
from fairlead.model.errors import NotFound, Refused

_ANY_BODY = RequestBody(schema={}, required=False)


class UnsupportedFeature(NamedTuple):
    """A feature: why it is missing and what to use instead, and its routes."""

    name: str
    reason: str
    #: Method, path, id, and what a read answers; None for a read of one item, which does not exist.
    routes: tuple[tuple[str, str, str, object], ...]


UNSUPPORTED_FEATURES: tuple[UnsupportedFeature, ...] = (
    UnsupportedFeature(
        "NIM services",
        "NVIDIA NIM services are not supported; submit an inference with the image instead",
        (
            ("POST", "/api/v2/workloads/nim-services", "create_nim_service", None),
            ("GET", "/api/v2/workloads/nim-services/{WorkloadV2Id}", "get_nim_service_by_id", None),
            ("PATCH", "/api/v2/workloads/nim-services/{WorkloadV2Id}", "update_nim_service_spec", None),
        ),
    ),
    UnsupportedFeature(
        "AI applications",
        "Workloads are not grouped into AI applications here",
        (
            ("GET", "/api/v1/ai-applications", "list_applications", {"applications": []}),
            ("GET", "/api/v1/ai-applications/count", "count_applications", {"count": 0}),
            ("GET", "/api/v1/ai-applications/{aiApplicationId}", "get_application", None),
        ),
    ),
    UnsupportedFeature(
        "identity providers over the API",
        "The identity provider is set with the server's flags --oidc-issuer and --oidc-client-id",
        (
            ("GET", "/api/v1/idps", "get_idps", []),
            ("POST", "/api/v1/idps", "create_idp", None),
            ("GET", "/api/v1/idps/{idp}", "get_idp", None),
            ("PUT", "/api/v1/idps/{idp}", "update_idp", None),
            ("DELETE", "/api/v1/idps/{idp}", "delete_idp", None),
            ("GET", "/api/v1/idps/{idp}/mappers", "get_idp_mappers", None),
            ("PUT", "/api/v1/idps/{idp}/mappers", "update_idp_mappers", None),
        ),
    ),
    UnsupportedFeature(
        "the logo",
        "The web page cannot show a logo of the tenant",
        (
            ("GET", "/api/v1/logo", "get_tenant_logo", None),
            ("POST", "/api/v1/logo", "upload_tenant_logo", None),
        ),
    ),
    UnsupportedFeature(
        "notification channels of 2.24",
        "Notifications are set with /api/v1/notification-rules, and mail with the server's flag --smtp-url",
        (
            ("GET", "/api/v1/notification-channels", "get_notification_channels", []),
            ("POST", "/api/v1/notification-channels", "create_notification_channel_config", None),
            ("POST", "/api/v1/notification-channels/slack/create-app", "create_slack_app", None),
            ("GET", "/api/v1/notification-channels/{name}", "get_notification_channel_config", None),
            ("PUT", "/api/v1/notification-channels/{name}", "update_notification_channel_config", None),
            ("PATCH", "/api/v1/notification-channels/{name}", "patch_notification_channel_config", None),
            ("DELETE", "/api/v1/notification-channels/{name}", "delete_notification_channel_config", None),
            ("POST", "/api/v1/validate-notification-channel", "validate_notification_channel", None),
            ("GET", "/api/v1/notification-state", "get_notification_state", {"enabled": False}),
            ("PATCH", "/api/v1/notification-state", "update_notification_state", None),
            ("GET", "/api/v1/notification-types", "get_notification_types", []),
            ("GET", "/api/v1/subscriptions", "get_my_subscriptions", []),
            ("POST", "/api/v1/subscriptions", "create_subscription", None),
            ("PUT", "/api/v1/subscriptions/{id}", "update_subscription", None),
            ("DELETE", "/api/v1/subscriptions/{id}", "delete_subscription", None),
        ),
    ),
    UnsupportedFeature(
        "registries",
        "Images are given by name; registries cannot be browsed",
        (
            ("GET", "/api/v1/asset/registries", "list_registries", {"entries": []}),
            ("POST", "/api/v1/asset/registries", "create_registry", None),
            ("GET", "/api/v1/asset/registries/{AssetId}", "get_registry_by_id", None),
            ("PUT", "/api/v1/asset/registries/{AssetId}", "update_registry", None),
            ("DELETE", "/api/v1/asset/registries/{AssetId}", "delete_registry", None),
            ("GET", "/api/v1/asset/registries/{AssetId}/repositories", "get_repositories", None),
            ("GET", "/api/v1/asset/registries/{AssetId}/repositories/tags", "get_repository_tags", None),
        ),
    ),
    UnsupportedFeature(
        "reports",
        "Reports are not made in the background; use GET /api/v1/usage",
        (
            ("GET", "/api/v1/org-unit/reports", "list_reports", {"reports": []}),
            ("POST", "/api/v1/org-unit/reports", "create_report", None),
            ("GET", "/api/v1/org-unit/reports/availability", "are_reports_available", {"isAvailable": False}),
            ("GET", "/api/v1/org-unit/reports/count", "count_reports", {"count": 0}),
            ("GET", "/api/v1/org-unit/reports/{reportId}", "get_report_by_id", None),
            ("DELETE", "/api/v1/org-unit/reports/{reportId}", "delete_report_by_id", None),
            ("GET", "/api/v1/org-unit/reports/{reportId}/file", "download_report_by_id", None),
        ),
    ),
    UnsupportedFeature(
        "configurations of storage classes",
        "Storage classes are used as the cluster has them",
        (
            (
                "GET",
                "/api/v1/storage-class-configuration",
                "list_storage_class_configuration",
                {"storageClassConfigurations": []},
            ),
            ("POST", "/api/v1/storage-class-configuration", "create_storage_class_configuration", None),
            ("GET", "/api/v1/storage-class-configuration/{id}", "get_storage_class_configuration_by_id", None),
            ("PUT", "/api/v1/storage-class-configuration/{id}", "update_storage_class_configuration_by_id", None),
            ("PATCH", "/api/v1/storage-class-configuration/{id}", "patch_storage_class_configuration_by_id", None),
            ("DELETE", "/api/v1/storage-class-configuration/{id}", "delete_storage_class_configuration_by_id", None),
        ),
    ),
    UnsupportedFeature(
        "templates made of assets",
        "Templates made of assets are not supported; use /api/v1/workload-templates",
        (
            ("GET", "/api/v1/asset/workload-template", "list_asset_templates", {"entries": []}),
            ("POST", "/api/v1/asset/workload-template", "create_asset_template", None),
            ("GET", "/api/v1/asset/workload-template/{AssetId}", "get_asset_template_by_id", None),
            ("PUT", "/api/v1/asset/workload-template/{AssetId}", "update_asset_template", None),
            ("DELETE", "/api/v1/asset/workload-template/{AssetId}", "delete_asset_template_by_id", None),
        ),
    ),
    UnsupportedFeature(
        "user applications",
        "User applications are called access keys; use /api/v1/access-keys",
        (
            ("GET", "/api/v1/user-applications", "get_user_applications", {"userApplications": []}),
            ("POST", "/api/v1/user-applications", "create_user_application", None),
            ("GET", "/api/v1/user-applications/{appId}", "get_user_application_by_id", None),
            ("DELETE", "/api/v1/user-applications/{appId}", "delete_user_application_by_id", None),
            ("POST", "/api/v1/user-applications/{appId}/secret", "regenerate_user_application_secret", None),
            (
                "GET",
                "/api/v1/administration/user-applications",
                "get_user_applications_administration",
                {"userApplications": []},
            ),
            (
                "DELETE",
                "/api/v1/administration/user-applications/{appId}",
                "delete_user_application_by_id_administration",
                None,
            ),
        ),
    ),
    UnsupportedFeature(
        "programs of Run:ai's command lines",
        "Run:ai's programs are not served here; install the command line with `pip install fairlead-workloads`",
        (
            ("GET", "/v1/k8s/admin-cli/{os}", "get_admin_cli_release", None),
            ("GET", "/v1/k8s/admin-cli/{os}/checksum", "get_admin_cli_release_checksum", None),
            ("GET", "/v1/k8s/admin-cli/{version}/{os}", "get_admin_cli_release_by_version", None),
            ("GET", "/v1/k8s/admin-cli/{version}/{os}/checksum", "get_admin_cli_release_by_version_checksum", None),
            *(
                ("GET", f"/api/v1/{room}/{path}", f"{id}{suffix}", None)
                for room, suffix in (("cli-exposer", ""), ("cli", "_deprecated"))
                for path, id in (
                    ("dist/{operatingSystem}/{architecture}/runai", "get_binary"),
                    ("docs/{documentName}", "get_manual_document"),
                    ("installer/linux", "get_installer_linux"),
                    ("installer/linux/commands", "get_installer_linux_commands"),
                    ("installer/mac", "get_installer_mac"),
                    ("installer/mac/commands", "get_installer_mac_commands"),
                    ("installer/unix", "get_installer_unix"),
                    ("installer/unix/commands", "get_installer_unix_commands"),
                    ("installer/windows/commands", "get_installer_windows_commands"),
                )
            ),
        ),
    ),
)


def _handler(feature: UnsupportedFeature, method: str, shown: object) -> Handler:
    async def answer(call: Call) -> Response:
        if shown is not None:
            return as_json(shown)
        if method == "GET":
            raise NotFound(f"This installation lacks {feature.name}: {feature.reason}")
        raise Refused(f"This installation lacks {feature.name}. {feature.reason}")

    return answer


def _operations() -> Iterator[Operation]:
    for feature in UNSUPPORTED_FEATURES:
        for method, path, id, shown in feature.routes:
            parameters = [part[1:-1] for part in path.split("/") if part.startswith("{")]
            success: dict[int, Schema] = {} if shown is None else {200: {}}
            yield Operation(
                method=method,
                path=path,
                id=id,
                tag="Not in this installation",
                summary=f"This installation lacks {feature.name}",
                run=_handler(feature, method, shown),
                parameters=tuple(Parameter(name=name, place="path", schema={"type": "string"}) for name in parameters),
                body=None if method in ("GET", "DELETE") else _ANY_BODY,
                answers={**failing(400, 401, 403, 404, 503), **success},
            )


UNSUPPORTED_OPERATIONS: tuple[Operation, ...] = tuple(_operations())
