"""`kubernetes manifests`: the objects by which Fairlead runs in a cluster, to be given to kubectl."""

from fairlead import __version__
from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.flags import Flag
from fairlead.engines.kubernetes.install.manifests import Installation
from fairlead.engines.kubernetes.install.preflight import render_installation
from fairlead.formats.yaml.text import render_yaml
from fairlead.model.errors import Refused

_FLAGS = (
    Flag("image", "The server's image", placeholder="IMAGE", default="fairlead:VERSION"),
    Flag("namespace", "Where it runs", placeholder="NAME", default="fairlead"),
    Flag("database-secret", "Secret in that namespace whose key `url` is a PostgreSQL address", placeholder="NAME"),
    Flag("replicas", "Servers; more than one need such a database", "integer", placeholder="N", default="1"),
    Flag("storage", "Size of its volume, when there is no such secret", placeholder="SIZE", default="1Gi"),
    Flag("argument", "A further word for `fairlead serve`", repeatable=True, placeholder="WORD"),
    Flag("webhook", "Serve TLS, and have the cluster ask about workloads that are applied", "boolean"),
    Flag("ingress-class", "Make Ingress objects of that class for workloads' URLs", placeholder="NAME"),
    Flag("no-crds", "Leave the custom resource definitions out", "boolean"),
    Flag("kubeconfig", "How the cluster is reached", placeholder="FILE", default="$KUBECONFIG"),
    Flag("offline", "Do not look whether the cluster has such objects of somebody else", "boolean"),
)
_DETAILS = """fairlead kubernetes manifests | kubectl apply -f -      installs it
fairlead kubernetes manifests | kubectl delete -f -     removes it; delete projects and workloads first

Nothing is written where definitions or the namespace exist already and are not Fairlead's."""


def commands(_noun: str) -> tuple[Command, ...]:
    summary = "Print the objects by which Fairlead runs in a cluster"
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
