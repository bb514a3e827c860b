"""The Pod Security Standards as far as they concern Linux pods, written down a second time for tests to measure by."""

from collections.abc import Iterator
from typing import Any

HARMLESS = {
    *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP"),
    *("SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
}
VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
FILTERS = ("RuntimeDefault", "Localhost")


def pods_in(found: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """(metadata, spec) of every pod or template of one, wherever it stands in an object."""
    if isinstance(found, list):
        for item in found:
            yield from pods_in(item)
    elif isinstance(found, dict):
        if "containers" in found.get("spec", {}):
            yield found.get("metadata", {}), found["spec"]
        else:
            for item in found.values():
                yield from pods_in(item)


def violations(metadata: dict[str, Any], pod: dict[str, Any], level: str) -> list[str]:
    found = [*_baseline(metadata, pod), *(_restricted(pod) if level == "restricted" else ())]
    return sorted(set(found))


def _containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod["containers"], *pod.get("initContainers", ()), *pod.get("ephemeralContainers", ())]


def _baseline(metadata: dict[str, Any], pod: dict[str, Any]) -> Iterator[str]:
    yield from (name for name in ("hostNetwork", "hostPID", "hostIPC") if pod.get(name))
    if any("hostPath" in volume for volume in pod.get("volumes", ())):
        yield "hostPath"
    for context in (pod.get("securityContext", {}), *(one.get("securityContext", {}) for one in _containers(pod))):
        if context.get("privileged"):
            yield "privileged"
        if set(context.get("capabilities", {}).get("add", ())) - HARMLESS:
            yield "capabilities"
        if context.get("seccompProfile", {}).get("type") == "Unconfined":
            yield "seccompProfile"
        for name in ("seLinuxOptions", "sysctls", "procMount", "windowsOptions", "appArmorProfile"):
            if name in context:
                yield name
    for container in _containers(pod):
        if any(port.get("hostPort") for port in container.get("ports", ())):
            yield "hostPort"
        for name in ("readinessProbe", "livenessProbe", "startupProbe", "lifecycle"):
            handler = container.get(name, {})
            if any(handler.get(way, {}).get("host") for way in ("httpGet", "tcpSocket")):
                yield f"{name}.host"
    for name, value in metadata.get("annotations", {}).items():
        if name.startswith("container.apparmor.security.beta.kubernetes.io/") and value == "unconfined":
            yield "apparmor"


def _restricted(pod: dict[str, Any]) -> Iterator[str]:
    if any(not VOLUMES & volume.keys() for volume in pod.get("volumes", ())):
        yield "volumes"
    whole = pod.get("securityContext", {})
    for container in _containers(pod):
        context = {**whole, **container.get("securityContext", {})}
        if context.get("allowPrivilegeEscalation") is not False:
            yield "allowPrivilegeEscalation"
        if context.get("runAsNonRoot") is not True:
            yield "runAsNonRoot"
        if context.get("runAsUser") == 0:
            yield "runAsUser"
        if context.get("seccompProfile", {}).get("type") not in FILTERS:
            yield "seccompProfile"
        capabilities = context.get("capabilities", {})
        if "ALL" not in capabilities.get("drop", ()) or set(capabilities.get("add", ())) - {"NET_BIND_SERVICE"}:
            yield "capabilities"
