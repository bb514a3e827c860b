"""The objects by which Fairlead itself runs in a cluster: as little as it needs, and nothing of others."""

import base64
import subprocess
import sys
from typing import Any

import msgspec
import pytest
import yaml
from cryptography import x509

from fairlead.engines.kubernetes.client.resources import RUNNERS, Resource
from fairlead.engines.kubernetes.install.manifests import Installation, render_manifests
from fairlead.engines.kubernetes.install.permissions import (
    CLUSTER_PERMISSIONS,
    INGRESS_PERMISSIONS,
    OWN_PERMISSIONS,
    PERMISSIONS,
    PROJECT_PERMISSIONS,
    Permission,
)
from fairlead.engines.kubernetes.install.preflight import make_certificate, render_installation
from fairlead.formats.legacy_policies import LEGACY_KINDS
from fairlead.formats.policy_crd import policy_plural
from fairlead.model.errors import Refused

PLAIN = Installation(image="fairlead:1")
ON_POSTGRES = Installation(image="fairlead:1", database_secret="database", has_definitions=False)
WITH_WEBHOOK = Installation(image="fairlead:1", namespace="tools", certificate=make_certificate("tools"))


def find(objects: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    found = [one for one in objects if one["kind"] == kind]
    assert len(found) == 1, [one["kind"] for one in objects]
    return found[0]


@pytest.mark.parametrize("wanted", [PLAIN, ON_POSTGRES, WITH_WEBHOOK], ids=["plain", "on-postgres", "with-webhook"])
def test_the_server_s_pod_passes_the_restricted_level(wanted: Installation) -> None:
    pod = find(render_manifests(wanted), "Deployment")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    allowed = {"emptyDir", "persistentVolumeClaim", "secret"}
    assert all(set(volume) - {"name"} <= allowed for volume in pod["volumes"])


@pytest.mark.parametrize("runner", RUNNERS, ids=lambda runner: runner.kind)
def test_whatever_makes_pods_may_be_made_and_watched(runner: Resource) -> None:
    of_it = [one for one in PERMISSIONS if (one.group, one.resource) == (runner.api.partition("/")[0], runner.plural)]
    granted = {verb for one in of_it for verb in one.verbs}
    assert {"create", "patch", "delete", "list", "watch"} <= granted


Granted = set[tuple[str, str, str]]


def granted_by(objects: list[dict[str, Any]], role: str, kind: str = "ClusterRole") -> Granted:
    [found] = [one for one in objects if (one["kind"], one["metadata"]["name"]) == (kind, role)]
    return {
        (group, resource, verb)
        for rule in found["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def listed(permissions: tuple[Permission, ...]) -> Granted:
    return {(one.group, one.resource, verb) for one in permissions for verb in one.verbs}


def test_roles_are_the_tables_of_permissions_and_nothing_more() -> None:
    objects = render_manifests(PLAIN)
    assert granted_by(objects, "fairlead") == listed(CLUSTER_PERMISSIONS)
    assert granted_by(objects, "fairlead-project") == listed(PROJECT_PERMISSIONS)
    assert granted_by(objects, "fairlead", "Role") == listed(OWN_PERMISSIONS)
    everything = listed(PERMISSIONS)
    assert not any("*" in (group, resource, verb) for group, resource, verb in everything)


def test_the_whole_cluster_is_read_without_secrets_and_without_pods_being_made() -> None:
    """In the whole cluster, the account writes only what belongs to projects as such."""
    for one in CLUSTER_PERMISSIONS:
        assert one.resource != "secrets"
        if not set(one.verbs) <= {"get", "list", "watch"}:
            written = {"namespaces", "nodes", "queues", "schedulingshards", "priorityclasses"}
            # Policies for all projects are in a namespace of no project.
            policies = {f"{policy_plural(name)}{part}" for name in LEGACY_KINDS for part in ("", "/status")}
            assert one.resource in {*written, *policies, "rolebindings", "clusterroles"}
            assert one.resource not in policies or not {"create", "delete"} & set(one.verbs)
    [configuration] = [one for one in CLUSTER_PERMISSIONS if one.resource == "configmaps"]
    assert configuration.names == ("config-features",)
    [role] = [one for one in CLUSTER_PERMISSIONS if one.resource == "clusterroles"]
    assert (role.names, role.verbs) == (("fairlead-project",), ("get", "bind"))


def test_only_the_first_role_is_bound_in_the_whole_cluster() -> None:
    bound = find(render_manifests(PLAIN), "ClusterRoleBinding")
    assert bound["roleRef"]["name"] == "fairlead"


def test_policies_confine_the_account_of_the_installation() -> None:
    objects = render_manifests(msgspec.structs.replace(PLAIN, namespace="tools"))
    policies = [one["spec"] for one in objects if one["kind"] == "ValidatingAdmissionPolicy"]
    assert [one["matchConstraints"]["resourceRules"][0]["resources"] for one in policies] == [
        ["rolebindings"],
        ["namespaces"],
    ]
    for policy in policies:
        assert policy["failurePolicy"] == "Fail"
        [condition] = policy["matchConditions"]
        assert condition["expression"] == "request.userInfo.username == 'system:serviceaccount:tools:fairlead'"
    bound = [one["spec"] for one in objects if one["kind"] == "ValidatingAdmissionPolicyBinding"]
    assert [one["validationActions"] for one in bound] == [["Deny"], ["Deny"]]


def test_with_a_class_the_server_makes_ingresses_that_find_it() -> None:
    plain, wanted = PLAIN, msgspec.structs.replace(PLAIN, namespace="tools", ingress_class="nginx")
    words, more = (
        find(render_manifests(one), "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
        for one in (plain, wanted)
    )
    assert set(more) - set(words) == {"--ingress-class=nginx", "--ingress-server=fairlead.tools.svc.cluster.local"}
    added = granted_by(render_manifests(wanted), "fairlead-project") - listed(PROJECT_PERMISSIONS)
    assert added == listed(INGRESS_PERMISSIONS)


def test_a_database_takes_the_place_of_the_volume() -> None:
    objects = render_manifests(ON_POSTGRES)
    assert "PersistentVolumeClaim" not in {one["kind"] for one in objects}
    container = find(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert "--database=$(DATABASE)" in container["args"]
    source = {"secretKeyRef": {"name": "database", "key": "url"}}
    assert {"name": "DATABASE", "valueFrom": source} in container["env"]
    assert "--keys-secret=fairlead/fairlead-keys" in container["args"]


def test_several_servers_reach_each_other_and_are_replaced_one_by_one() -> None:
    wanted = msgspec.structs.replace(WITH_WEBHOOK, database_secret="database", replicas=3)
    spec = find(render_manifests(wanted), "Deployment")["spec"]
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    assert (spec["replicas"], spec["strategy"]) == (3, rolling)
    container = spec["template"]["spec"]["containers"][0]
    assert "--advertise=https://$(ADDRESS):7420#fairlead.tools.svc" in container["args"]
    # A server drains well before it is killed.
    assert "--drain-seconds=10" in container["args"]
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] > 3 * 10


def test_several_servers_need_a_database() -> None:
    with pytest.raises(Refused, match="--database-secret"):
        render_installation(Installation(image="i", replicas=2), has_webhook=False, kubeconfig="", is_offline=True)


@pytest.mark.parametrize("kind", ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"])
def test_webhooks_ask_about_our_own_kinds_only_and_fail_open(kind: str) -> None:
    [hook] = find(render_manifests(WITH_WEBHOOK), kind)["webhooks"]
    assert hook["failurePolicy"] == "Ignore"
    assert {group for rule in hook["rules"] for group in rule["apiGroups"]} == {"run.ai", "workloads.fairlead.dev"}
    assert all("*" not in rule["resources"] for rule in hook["rules"])


def test_the_webhook_s_certificate_is_the_one_that_the_server_shows() -> None:
    objects = render_manifests(WITH_WEBHOOK)
    shown = base64.b64decode(find(objects, "Secret")["data"]["tls.crt"])
    [hook] = find(objects, "ValidatingWebhookConfiguration")["webhooks"]
    assert base64.b64decode(hook["clientConfig"]["caBundle"]) == shown
    names = x509.load_pem_x509_certificate(shown).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert "fairlead.tools.svc" in names.value.get_values_for_type(x509.DNSName)


def test_every_object_has_the_label_by_which_it_is_known_as_ours() -> None:
    for one in render_manifests(WITH_WEBHOOK):
        assert one["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "fairlead", one["kind"]


def test_the_command_prints_what_kubectl_takes() -> None:
    words = [
        "kubernetes",
        "manifests",
        "--offline",
        "--image",
        "registry.local/fairlead:2",
        "--argument=--domain=x.local",
    ]
    done = subprocess.run([sys.executable, "-m", "fairlead", *words], capture_output=True, text=True, check=True)
    objects = list(yaml.safe_load_all(done.stdout))
    container = find(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "registry.local/fairlead:2"
    assert container["args"][-1] == "--domain=x.local"
    kinds = [one["kind"] for one in objects]
    assert kinds.index("Namespace") == 0
    assert "CustomResourceDefinition" in kinds


def test_in_the_other_group_nothing_is_run_ai_s() -> None:
    """Beside the definitions of a Run:ai: definitions, permissions and webhooks name our own group only."""
    wanted = Installation(image="fairlead:1", group="workloads.fairlead.dev", certificate=make_certificate("fairlead"))
    made = render_manifests(wanted)
    groups = {one["spec"]["group"] for one in made if one["kind"] == "CustomResourceDefinition"}
    assert groups == {"workloads.fairlead.dev"}
    assert not {group for role in ("fairlead", "fairlead-project") for group, _, _ in granted_by(made, role)} & {
        "run.ai"
    }
    assert ("workloads.fairlead.dev", "trainingworkloads", "watch") in granted_by(made, "fairlead")
    hooks = [hook for one in made if one["kind"].endswith("WebhookConfiguration") for hook in one["webhooks"]]
    assert {group for hook in hooks for rule in hook["rules"] for group in rule["apiGroups"]} == groups
    [container] = find(made, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert "--group=workloads.fairlead.dev" in container["args"]


def test_kinds_of_manifests_are_read_in_the_cluster_and_written_in_projects() -> None:
    roles = {
        one["metadata"]["name"]: one["rules"]
        for one in render_manifests(Installation(image="i", workload_kinds=(("jobset.x-k8s.io", "jobsets"),)))
        if one["kind"] == "ClusterRole"
    }
    group = {"apiGroups": ["jobset.x-k8s.io"], "resources": ["jobsets"]}
    assert {**group, "verbs": ["get", "list", "watch"]} in roles["fairlead"]
    assert {**group, "verbs": ["create", "patch", "delete"]} in roles["fairlead-project"]
