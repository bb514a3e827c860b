#!/usr/bin/env bash
# Installs the packages of system-packages.txt that are missing, and says so. With --if-possible, as root on Debian
# only; elsewhere it says what stays missing and succeeds (the tests that need it are left out and named).
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
while read -r package program _; do
  case $package in '' | '#'*) continue ;; esac
  [ -e "$program" ] || command -v "$program" >/dev/null || missing+=("$package")
done <scripts/system-packages.txt
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  if [ "${1:-}" = --if-possible ]; then
    echo "Missing here: ${missing[*]}. Tests that need them are left out; 'make system-packages' as root on Debian installs them." >&2
    exit 0
  fi
  echo "Missing: ${missing[*]}. Installing them takes root on Debian or its like: sudo make system-packages" >&2
  exit 1
fi

echo "Installing Debian packages that the tests need: ${missing[*]} (scripts/system-packages.txt says why)" >&2
export DEBIAN_FRONTEND=noninteractive
install() { apt-get install --yes --no-install-recommends -o DPkg::Lock::Timeout=120 "${missing[@]}"; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install >"$log" 2>&1 || { apt-get update >>"$log" 2>&1 && install >>"$log" 2>&1; } || { cat "$log" >&2; exit 1; }
