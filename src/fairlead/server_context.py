"""What a server needs before it can serve: its store, its context, the first records, and keys.

Called by `app`, which hands the settings in. The only module that opens a concrete store.
"""

import importlib
import socket
import time
from pathlib import Path

import msgspec

from fairlead.control.bootstrap import ensure_defaults
from fairlead.control.context import Context, EngineView
from fairlead.control.directory import Directory
from fairlead.control.ids import GrowingIds, new_suffix
from fairlead.control.keys import agree_on_vault, load_vault, write_private
from fairlead.control.people.authentication import ADMINISTRATOR, CREDENTIALS, agree_on_key, ensure_accounts
from fairlead.control.people.tokens import Signer, load_signer
from fairlead.control.serving.traffic import Traffic
from fairlead.control.serving.urls import UrlRegistry, UrlSettings
from fairlead.model.clock import Millis
from fairlead.model.errors import Refused
from fairlead.model.records.organization import RecoveredOrganization
from fairlead.serve_flags import DEFAULT_PROXY_PORT, ENGINES, LOCAL
from fairlead.settings import ServerSettings, check_mode, find_database, is_postgres
from fairlead.store.base import Store
from fairlead.store.sqlite import open_sqlite

#: In the data folder: what `fairlead restore --from-cluster` read, until the next server starts.
RECOVERED = "recovered.json"
#: Modules that are imported only if the settings need them.
_POSTGRES = "fairlead.store.postgres"
_RENDER = "fairlead.engines.kubernetes.render.workload"


async def open_store(settings: ServerSettings) -> Store:
    database = find_database(settings)
    if is_postgres(database):
        store: Store = await importlib.import_module(_POSTGRES).open_postgres(database)
        return store
    return await open_sqlite(database)


def make_context(settings: ServerSettings, store: Store, proxied: socket.socket | None) -> Context:
    window = settings.control.scaling_window
    return Context(
        store=store,
        clock=now,
        directory=Directory(store),
        sessions=None,
        settings=settings.control,
        new_id=GrowingIds(now).next,
        new_suffix=new_suffix,
        vault=load_vault(settings.data_dir),
        url_registry=UrlRegistry(read_url_settings(settings, proxied), Traffic(now, time.monotonic, window)),
        engine=EngineView(is_cluster=settings.engine != LOCAL),
        render_objects=lambda *workload: importlib.import_module(_RENDER).render_spec(*workload),
    )


def read_url_settings(settings: ServerSettings, proxied: socket.socket | None) -> UrlSettings:
    """The public form of workloads' URLs: at our proxy, or at an ingress controller in front of it."""
    is_tls = bool(settings.tls_certificate)
    port = proxied.getsockname()[1] if proxied else settings.proxy_port or DEFAULT_PROXY_PORT
    given = (settings.ingress_class, settings.ingress_server)
    if any(given) or settings.ingress_tls:
        if settings.engine == LOCAL or not all(given):
            raise Refused("Ingress objects need all of --engine kubernetes, --ingress-class and --ingress-server")
        is_tls, port = settings.ingress_tls, 443 if settings.ingress_tls else 80
    scheme = "https" if is_tls else "http"
    return UrlSettings(scheme=scheme, domain=settings.domain.lower(), port=port, by_path=settings.url_paths)


async def prepare_records(settings: ServerSettings, context: Context) -> Signer:
    """Create the records and keys that every server needs, and check that they fit; returns what signs tokens."""
    await ensure_defaults(context, "" if settings.api_only else settings.engine, _load_recovered(settings.data_dir))
    (settings.data_dir / RECOVERED).unlink(missing_ok=True)
    cluster = context.directory.cluster
    if await ensure_accounts(context, settings.data_dir, cluster.id):
        await share_keys(settings)
    _check_mode(settings, context)
    signer = load_signer(settings.data_dir, cluster.id, now, settings.token_seconds)
    await agree_on_key(context, signer.fingerprint)
    await agree_on_vault(context)
    return signer


def _load_recovered(folder: Path) -> RecoveredOrganization | None:
    """What `fairlead restore --from-cluster` left for a server with an empty or restored database."""
    try:
        return msgspec.json.decode((folder / RECOVERED).read_bytes(), type=RecoveredOrganization)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise Refused(f"{folder / RECOVERED} cannot be read; run `fairlead restore --from-cluster` again") from error


def _check_mode(settings: ServerSettings, context: Context) -> None:
    """Check the mode against who has an account here."""
    users = (user for user in context.directory.users.values() if user.type == "user" and user.name != ADMINISTRATOR)
    check_mode(settings, sorted(user.name for user in users))


async def share_keys(settings: ServerSettings) -> None:
    """Share keys through a Secret of the cluster, for servers that do not keep their data folders."""
    if not settings.keys_secret:
        return
    if settings.engine == LOCAL:
        raise Refused("--keys-secret needs --engine kubernetes: it names a Secret of the cluster")
    folder = settings.data_dir
    load_vault(folder)
    load_signer(folder, "", now)
    mine = {path.name: path.read_bytes() for path in (*(folder / "keys").iterdir(), *folder.glob(CREDENTIALS))}
    shared = await importlib.import_module(ENGINES[settings.engine]).share_keys(settings, mine)
    for name, content in shared.items():
        write_private(folder / (name if name == CREDENTIALS else f"keys/{name}"), content)


def now() -> Millis:
    return time.time_ns() // 1_000_000
