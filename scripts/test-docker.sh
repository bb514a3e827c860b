#!/usr/bin/env bash
# The tests of containers by Docker, as root on Debian: its engine is fetched once into .tools (nothing is installed) and
# started by the tests themselves, on a socket and a folder of its own, without touching the machine's network.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$(id -u)" != 0 ]; then
  echo "Docker's engine needs root: run this as root, or leave these tests to those who can" >&2
  exit 1
fi
if ! PATH=/usr/local/bin:/usr/bin command -v docker >/dev/null; then
  echo "the server runs the command docker, which is not installed here (Debian: apt-get install docker-cli or docker.io)" >&2
  exit 1
fi
place=$PWD/.tools/docker
if [ ! -x "$place/usr/sbin/dockerd" ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  chmod 755 "$folder"
  (cd "$folder" && apt-get download --quiet docker.io containerd tini)
  for package in "$folder"/*.deb; do dpkg --extract "$package" "$place"; done
fi
export PATH=$place/usr/bin:$place/usr/sbin:$PATH
exec .venv/bin/pytest -m docker tests/e2e/test_container_engines.py "$@"
