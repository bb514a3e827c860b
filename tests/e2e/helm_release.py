"""Helm and kubectl on a test's cluster, and a release of the chart in a namespace of its own."""

import json
import subprocess
from pathlib import Path
from typing import Any

from deploy.cluster import build, cluster

CHART = Path(__file__).parents[2] / "deploy" / "helm"
PATIENCE = "240s"
WAITS = ("--wait", "--timeout", PATIENCE)


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(build.place_of("helm")), *arguments], capture_output=True, text=True)


class Release:
    """The release `fairlead` in one namespace."""

    def __init__(self, running: cluster.Cluster, space: str) -> None:
        self._running = running
        self.space = space

    def kubectl(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [build.kubectl(), f"--kubeconfig={self._running.kubeconfig}", *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True)

    def apply(self, *objects: dict[str, Any]) -> None:
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        done = self.kubectl("apply", "-f", "-", stdin=listed)
        assert done.returncode == 0, done.stderr

    def get(self, *arguments: str) -> Any:
        """An object of the release's namespace, or a list."""
        done = self.kubectl("get", "-n", self.space, *arguments, "-o", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def helm(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        done = helm(*arguments, "--kubeconfig", str(self._running.kubeconfig), "--namespace", self.space)
        assert done.returncode == 0, f"{done.stderr}\n{self._tell() if done.returncode else ''}"
        return done

    def _tell(self) -> str:
        told = self.kubectl("describe", "pods", "-n", self.space).stdout[-3000:]
        chosen = ("-l", "app.kubernetes.io/component=server", "--tail=40", "--prefix")
        return told + self.kubectl("logs", "-n", self.space, *chosen).stdout[-3000:]

    def pods(self) -> list[dict[str, Any]]:
        """The servers that were not told to end."""
        found = self.get("pods", "-l", "app.kubernetes.io/component=server")["items"]
        return [one for one in found if "deletionTimestamp" not in one["metadata"]]

    def clean(self) -> None:
        """Nothing of the release or of its projects is left."""
        helm("uninstall", "fairlead", "--kubeconfig", str(self._running.kubeconfig), "-n", self.space, "--wait")
        # Without a server nobody takes off the finalizers of workloads that still exist.
        for one in json.loads(self.kubectl("get", "trainingworkloads.run.ai", "-A", "-o", "json").stdout or "{}").get(
            "items", ()
        ):
            place = (one["metadata"]["name"], "-n", one["metadata"]["namespace"])
            self.kubectl("patch", "trainingworkload", *place, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        owned = "queues.scheduling.run.ai,namespaces"
        self.kubectl("delete", owned, "-l", "fairlead/cluster", f"--timeout={PATIENCE}")
        self.kubectl("delete", "namespace", self.space, "--ignore-not-found", f"--timeout={PATIENCE}")
