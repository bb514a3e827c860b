"""A real Kubernetes API on this machine: etcd and kube-apiserver on loopback, for tests of the custom resources.

`python deploy/cluster/control_plane.py up FOLDER` starts them and writes FOLDER/kubeconfig; `down FOLDER` stops them.
Nothing schedules or runs pods here.
"""

import json
import os
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import build

PATIENCE = 60.0


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def spawn(folder: Path, name: str, *flags: str) -> int:
    with open(folder / f"{name}.log", "ab") as log:
        process = subprocess.Popen(
            [str(build.folder() / name), *flags], cwd=folder, stdout=log, stderr=log, start_new_session=True
        )
    return process.pid


def start_etcd(folder: Path) -> tuple[int, str]:
    client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    flags = (
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=error",
    )
    return spawn(folder, "etcd", *flags), client


def start_apiserver(folder: Path, etcd: str, token: str) -> tuple[int, str]:
    port = free_port()
    key = folder / "service-accounts.key"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    tokens = folder / "tokens.csv"
    tokens.write_text(f'{token},admin,admin,"system:masters"\n')
    tokens.chmod(0o600)
    flags = (
        f"--etcd-servers={etcd}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--cert-dir={folder / 'certificates'}",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--token-auth-file={tokens}",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--allow-privileged",
        "--disable-admission-plugins=ServiceAccount",
    )
    return spawn(folder, "kube-apiserver", *flags), f"https://127.0.0.1:{port}"


def is_ready(url: str, token: str) -> bool:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    request = urllib.request.Request(f"{url}/readyz", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=2, context=context) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def up(folder: Path) -> Path:
    """Start both, wait until they answer; the way in is a kubeconfig."""
    folder.mkdir(parents=True, exist_ok=True)
    token = secrets.token_hex(16)
    etcd, address = start_etcd(folder)
    apiserver, url = start_apiserver(folder, address, token)
    (folder / "pids.json").write_text(json.dumps([apiserver, etcd]))
    deadline = time.monotonic() + PATIENCE
    while not is_ready(url, token):
        if time.monotonic() > deadline:
            down(folder)
            raise SystemExit(f"kube-apiserver did not become ready; see {folder / 'kube-apiserver.log'}")
        time.sleep(0.1)
    config = folder / "kubeconfig"
    config.write_text(render_config(url, token, folder / "certificates" / "apiserver.crt"))
    config.chmod(0o600)
    return config


def render_config(url: str, token: str, certificate: Path) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "local", "cluster": {"server": url, "certificate-authority": str(certificate)}}],
            "users": [{"name": "admin", "user": {"token": token}}],
            "contexts": [{"name": "local", "context": {"cluster": "local", "user": "admin"}}],
            "current-context": "local",
        },
        indent=2,
    )


def down(folder: Path) -> None:
    """Stop what `up` started there, one after the other: an apiserver without its etcd would never end."""
    path = folder / "pids.json"
    if not path.exists():
        return
    for pid in json.loads(path.read_text()):
        stop(pid)
    path.unlink()


def stop(pid: int) -> None:
    """TERM, and KILL to what has not ended some seconds later."""
    for number, patience in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and is_running(pid):
            time.sleep(0.05)


def is_running(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def main() -> int:
    words = sys.argv[1:]
    if len(words) != 2 or words[0] not in ("up", "down"):
        sys.stderr.write("usage: control_plane.py up|down FOLDER\n")
        return 2
    folder = Path(words[1]).absolute()
    if words[0] == "down":
        down(folder)
        return 0
    code = build.main()
    if code:
        return code
    sys.stdout.write(f"export KUBECONFIG={up(folder)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
