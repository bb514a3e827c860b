"""`kubernetes manifests`: prints the objects that install Fairlead in a cluster, for kubectl."""

from fairlead import __version__
from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.flags import Flag
from fairlead.engines.kubernetes.install.manifests import Installation
from fairlead.engines.kubernetes.install.preflight import render_installation
from fairlead.formats.yaml.text import render_yaml
from fairlead.model.errors import Refused

_FLAGS = (
    Flag("image", "Image of the server", placeholder="IMAGE", default="fairlead:VERSION"),
    Flag("namespace", "Namespace of the server", placeholder="NAME", default="fairlead"),
    Flag("database-secret", "Secret in the namespace whose key `url` is a PostgreSQL address", placeholder="NAME"),
    Flag(
        "replicas", "Number of servers; more than one needs --database-secret", "integer", placeholder="N", default="1"
    ),
    Flag("storage", "Size of the volume for SQLite, without --database-secret", placeholder="SIZE", default="1Gi"),
    Flag("argument", "Additional argument of `fairlead serve`", repeatable=True, placeholder="ARGUMENT"),
    Flag("webhook", "Serve TLS and install a webhook that validates applied workloads", "boolean"),
    Flag("ingress-class", "Create Ingress objects of this class for the URLs of workloads", placeholder="NAME"),
    Flag("no-crds", "Do not print the custom resource definitions", "boolean"),
    Flag("kubeconfig", "Kubeconfig of the cluster", placeholder="FILE", default="$KUBECONFIG"),
    Flag("offline", "Do not check the cluster for conflicting objects", "boolean"),
)
_DETAILS = """Install:    fairlead kubernetes manifests | kubectl apply -f -
Uninstall:  fairlead kubernetes manifests | kubectl delete -f -
            (delete projects and workloads first)

Prints nothing and fails if the namespace or a definition exists already and was
not created by Fairlead."""


def commands(_noun: str) -> tuple[Command, ...]:
    summary = "Print the objects that install Fairlead in a cluster"
    return (Command("manifests", summary, _print_manifests, flags=_FLAGS, details=_DETAILS),)


def _print_manifests(invocation: Invocation) -> int:
    wanted = Installation(
        image=invocation.get("image", f"fairlead:{__version__}"),
        namespace=invocation.get("namespace", "fairlead"),
        database_secret=invocation.get("database-secret", ""),
        replicas=invocation.get("replicas", 1),
        storage=invocation.get("storage", "1Gi"),
        arguments=tuple(invocation.get("argument", ())),
        ingress_class=invocation.get("ingress-class", ""),
        has_definitions=not invocation.get("no-crds", False),
    )
    asked = (invocation.get("webhook", False), invocation.get("kubeconfig", ""), invocation.get("offline", False))
    try:
        objects = render_installation(wanted, *asked)
    except Refused as error:
        invocation.environment.stderr.write(f"fairlead: {error}.\n")
        return FAILED
    invocation.environment.stdout.write(render_yaml(*objects))
    return OK
