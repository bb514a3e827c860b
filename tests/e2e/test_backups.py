"""Scheduled backups of a running server, on both databases, and what is told about them."""

import json
import re
import urllib.request
from pathlib import Path

import pytest

from tests.e2e.cli_calls import Caller
from tests.e2e.server import Server, until
from tests.postgres import PostgresServer

SCHEDULE = ("--backup-every", "1s", "--keep", "2")


def backups_of(server: Server) -> list[Path]:
    return sorted((server.data_dir / "backups").glob("*.tar.gz"))


def metrics_of(server: Server) -> str:
    with urllib.request.urlopen(f"{server.url}/metrics") as answer:
        text: str = answer.read().decode()
        return text


def finding(fairlead: Caller, what: str) -> dict[str, str]:
    called = fairlead("doctor", "-o", "json")
    return next(each for each in json.loads(called.out) if each["what"] == what)


def test_backups_are_made_by_time_verified_and_pruned(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", *SCHEDULE)
    server.start()
    try:
        first = until(lambda: backups_of(server), "the first backup")[0]
        until(lambda: not first.exists(), "the oldest backup is deleted")
        until(lambda: len(backups_of(server)) == 2, "two are kept")
        age = re.search(r"^fairlead_backup_age_seconds (\S+)$", metrics_of(server), re.MULTILINE)
        assert age is not None
        assert float(age[1]) < 120
        assert "fairlead_backup_failures_total 0" in metrics_of(server)
        # Whether it is late is a matter of seconds here.
        assert "verified by a test restore" in finding(Caller(server.data_dir, tmp_path), "Backup")["found"]
    finally:
        server.close()
    assert {path.stat().st_mode & 0o777 for path in backups_of(server)} == {0o600}
    assert not list(server.data_dir.glob("tmp*"))
    assert sorted((server.data_dir / "backups").iterdir()) == backups_of(server)
    last = json.loads((server.data_dir / "last-backup.json").read_text())
    assert last["records"] > 0
    restored = Caller(tmp_path / "restored", tmp_path)
    restored.ok("restore", last["file"])
    assert (restored.data_dir / "fairlead.db").exists()


def test_a_folder_that_cannot_be_made_is_counted_as_a_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    server = Server(tmp_path / "data", *SCHEDULE, "--backup-dir", str(tmp_path / "file" / "backups"))
    server.start()
    try:
        until(lambda: "fairlead_backup_failures_total 1" in metrics_of(server), "the failure is counted")
        assert "fairlead_backup_age_seconds" not in metrics_of(server)
    finally:
        server.close()


@pytest.mark.xdist_group("postgres")
def test_a_postgres_database_is_backed_up_and_restored(postgres_server: PostgresServer, tmp_path: Path) -> None:
    database = postgres_server.new_database()
    server = Server(tmp_path / "data", "--database", database)
    fairlead = Caller(server.data_dir, tmp_path)
    server.start()
    try:
        fairlead.ok("user", "create", "ann@lab.example")
        # The server remembers which database it has.
        assert "records can be read" in fairlead("backup", "copy.tar.gz").err
        fairlead.ok("user", "create", "bob@lab.example")
        assert "stop" in fairlead("restore", "copy.tar.gz", "--force").err.lower()
    finally:
        server.close()
    refused = fairlead("restore", "copy.tar.gz", "--data-dir", str(tmp_path / "other"))
    assert "--database" in refused.err
    fairlead.ok("restore", "copy.tar.gz", "--force", "--database", database)
    server.start()
    try:
        names = fairlead.ok("user", "list", "-o", "name")
        assert "ann@lab.example" in names
        assert "bob@lab.example" not in names
    finally:
        server.close()
