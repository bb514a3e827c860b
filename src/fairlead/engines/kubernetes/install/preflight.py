"""Prepares an installation of Fairlead: creates a certificate, and checks that nothing of somebody else is in the way.

Called by `fairlead kubernetes manifests`. It reads from the cluster and changes nothing there.
"""

import asyncio
import datetime
import os

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import Api, ApiError
from fairlead.engines.kubernetes.client.kubeconfig import load_access
from fairlead.engines.kubernetes.client.resources import Manifest
from fairlead.engines.kubernetes.install.manifests import (
    NAME,
    Certificate,
    Installation,
    render_definitions,
    render_manifests,
)
from fairlead.formats.custom_resource import OWN_GROUP
from fairlead.model.errors import Refused

_MANAGED = "app.kubernetes.io/managed-by"
_LIFE = datetime.timedelta(days=3650)


class _Labelled(msgspec.Struct):
    metadata: objects.Metadata = objects.Metadata()


def render_installation(wanted: Installation, has_webhook: bool, kubeconfig: str, is_offline: bool) -> list[Manifest]:
    """The objects; raises Refused if a definition or the namespace of that name exists and is not ours."""
    if wanted.replicas != 1 and not wanted.database_secret:
        raise Refused("--replicas: several servers need a shared database; use --database-secret")
    if not is_offline:
        asyncio.run(_refuse_foreign(wanted, kubeconfig))
    if has_webhook:
        wanted = msgspec.structs.replace(wanted, certificate=make_certificate(wanted.namespace))
    return render_manifests(wanted)


async def _refuse_foreign(wanted: Installation, kubeconfig: str) -> None:
    access = load_access(kubeconfig, os.environ)
    api = Api(access)
    paths = {f"namespace {wanted.namespace}": f"/api/v1/namespaces/{wanted.namespace}"}
    if wanted.has_definitions:
        base = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        for definition in render_definitions(wanted.group):
            name = definition["metadata"]["name"]
            paths[f"definition {name}"] = f"{base}/{name}"
    try:
        foreign = [what for what, path in paths.items() if await _is_foreign(api, path)]
    except (OSError, ApiError) as error:
        raise Refused(
            f"Cannot read from the cluster at {access.host}:{access.port}: {error}. Use --offline to skip this check"
        ) from error
    finally:
        api.close()
    if foreign:
        raise Refused(
            f"Not created by Fairlead, and not overwritten: {', '.join(foreign)}. Choose another --namespace, give "
            f"the custom resources another group with --group {OWN_GROUP}, or leave definitions out with --no-crds"
        )


async def _is_foreign(api: Api, path: str) -> bool:
    try:
        known = msgspec.json.decode(await api.get(path), type=_Labelled)
    except ApiError as error:
        if error.status == 404:
            return False
        raise
    return known.metadata.labels.get(_MANAGED) != NAME


def make_certificate(namespace: str) -> Certificate:
    """A self-signed certificate for the server's Service, which only the cluster's API server needs to trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    inside = [f"{NAME}.{namespace}.svc", f"{NAME}.{namespace}.svc.cluster.local", f"{NAME}.{namespace}", NAME]
    # The last one is for `kubectl port-forward`.
    hosts = [*inside, "localhost"]
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + _LIFE)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    chain = builder.public_bytes(serialization.Encoding.PEM).decode()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Certificate(authority=chain, chain=chain, key=private.decode())
