"""`kubernetes manifests` prints the objects that install Fairlead in a cluster, for kubectl; `kubernetes adopt` takes
over workloads of Run:ai in the same cluster."""

from fairlead import __version__
from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.flags import Flag, UsageError
from fairlead.cli.terminal.console import Console
from fairlead.client import ClientError
from fairlead.engines.kubernetes.install.manifests import GROUPS, Installation
from fairlead.engines.kubernetes.install.preflight import render_installation
from fairlead.engines.kubernetes.install.takeover import TakeoverRequest, take_over
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
    Flag(
        "workload-kind",
        "Kind of object that users submit as manifests, such as jobsets.jobset.x-k8s.io",
        repeatable=True,
        placeholder="PLURAL.GROUP",
    ),
    Flag(
        "group",
        "API group of the custom resources; the second one if the cluster has Run:ai's definitions",
        placeholder="GROUP",
        choices=GROUPS,
        default=GROUPS[0],
    ),
    Flag("no-crds", "Do not print the custom resource definitions", "boolean"),
    Flag("kubeconfig", "Kubeconfig of the cluster", placeholder="FILE", default="$KUBECONFIG"),
    Flag("offline", "Do not check the cluster for conflicting objects", "boolean"),
)
_DETAILS = """Install:    fairlead kubernetes manifests | kubectl apply -f -
Uninstall:  fairlead kubernetes manifests | kubectl delete -f -
            (delete projects and workloads first)

Prints nothing and fails if the namespace or a definition exists already and was
not created by Fairlead."""

_ADOPT_FLAGS = (
    Flag("cluster-id", "Id of your Fairlead installation: the clusterId in credentials.json", placeholder="ID"),
    Flag("namespace", "Only workloads in this namespace", placeholder="NAME"),
    Flag("start", "Start the copies of workloads that are not suspended", "boolean"),
    Flag("kubeconfig", "Kubeconfig of the cluster", placeholder="FILE", default="$KUBECONFIG"),
    Flag("dry-run", "Only show what would be done, which is the default", "boolean"),
    Flag("yes", "Do it", "boolean", "y"),
)
_ADOPT_DETAILS = f"""With --group {GROUPS[1]}, Fairlead runs next to Run:ai.
This command copies the workloads of Run:ai into that group, and hands their
namespaces over to projects of Fairlead of the same names, which you create
first. It never changes the originals. Copies are suspended, so that nothing
runs twice: delete the original, then resume the copy."""


def commands(_noun: str) -> tuple[Command, ...]:
    summary = "Print the objects that install Fairlead in a cluster"
    return (
        Command("manifests", summary, _print_manifests, flags=_FLAGS, details=_DETAILS),
        Command("adopt", "Copy workloads of Run:ai in the same cluster", _adopt, _ADOPT_FLAGS, details=_ADOPT_DETAILS),
    )


def _print_manifests(invocation: Invocation) -> int:
    wanted = Installation(
        image=invocation.get("image", f"fairlead:{__version__}"),
        namespace=invocation.get("namespace", "fairlead"),
        database_secret=invocation.get("database-secret", ""),
        replicas=invocation.get("replicas", 1),
        storage=invocation.get("storage", "1Gi"),
        arguments=tuple(invocation.get("argument", ())),
        ingress_class=invocation.get("ingress-class", ""),
        workload_kinds=tuple(_read_kind(each) for each in invocation.get("workload-kind", ())),
        group=invocation.get("group", GROUPS[0]),
        has_definitions=not invocation.get("no-crds", False),
    )
    options = (invocation.get("webhook", False), invocation.get("kubeconfig", ""), invocation.get("offline", False))
    try:
        objects = render_installation(wanted, *options)
    except Refused as error:
        invocation.environment.stderr.write(f"fairlead: {error}.\n")
        return FAILED
    invocation.environment.stdout.write(render_yaml(*objects))
    return OK


def _read_kind(text: str) -> tuple[str, str]:
    """Group and plural."""
    plural, dot, group = text.partition(".")
    if not plural or not dot or not group:
        raise UsageError(f"--workload-kind: {text!r} is not PLURAL.GROUP, such as jobsets.jobset.x-k8s.io.")
    return group, plural


def _adopt(invocation: Invocation) -> int:
    if not invocation.get("cluster-id"):
        raise UsageError("Name your Fairlead installation with --cluster-id: the clusterId in its credentials.json.")
    if invocation.get("yes") and invocation.get("dry-run"):
        raise UsageError("Use only one of --yes and --dry-run.")
    wanted = TakeoverRequest(
        kubeconfig=invocation.get("kubeconfig", ""),
        cluster_id=invocation.get("cluster-id", ""),
        namespace=invocation.get("namespace", ""),
        starts=invocation.get("start", False),
    )
    is_dry_run = not invocation.get("yes", False)
    try:
        plan = take_over(wanted, is_dry_run=is_dry_run)
    except Refused as error:
        raise ClientError(str(error)) from error
    console = Console(invocation)
    for step in plan:
        place = f"{step.namespace}/{step.name}" if step.namespace else step.name
        console.data(f"{step.kind} {place} {step.what}")
    if is_dry_run and any(step.method for step in plan):
        console.say("Nothing was changed. Use --yes to do it.")
    return FAILED if any(step.is_refused for step in plan) else OK
