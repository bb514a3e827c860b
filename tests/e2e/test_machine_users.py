"""A shared server as root, whose users are accounts of the machine: real accounts, made for these tests and removed."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from fairlead.client.access.machine import DEFAULT_SOCKET
from tests.e2e.cli_calls import COMMAND, Called, Caller
from tests.e2e.server import Server
from tests.e2e.turns import take_turns

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it makes accounts and runs pods as them"),
    pytest.mark.xdist_group("machine-accounts"),
]
GROUP = "fairlead-lab"


class Person(NamedTuple):
    """Somebody at a shell of this machine."""

    account: str
    uid: int
    home: Path
    socket: Path

    def __call__(self, *arguments: str, folder: Path | None = None, stdin: str = "", **environ: str) -> Called:
        """The command in a shell of theirs, which has no configuration of Fairlead."""
        done = subprocess.run(
            [*COMMAND, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            cwd=folder or self.home,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "FAIRLEAD_MACHINE_SOCKET": str(self.socket),
                **environ,
            },
            user=self.account,
            group=self.account,
            extra_groups=[GROUP] if self.account.endswith("ann") else [],
            check=False,
        )
        return Called(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder that every account can pass through; not below /tmp, of which each pod has its own."""
    # Two processes must not make and remove the same accounts.
    with take_turns("accounts"):
        place = Path(tempfile.mkdtemp(prefix="fairlead-lab-", dir="/var/tmp"))
        place.chmod(0o755)
        (place / "home").mkdir(mode=0o755)
        (place / "home").chmod(0o755)
        yield place
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="module")
def people(place: Path) -> Iterator[dict[str, Person]]:
    names = {short: f"fl-{short}" for short in ("ann", "bob", "eve")}
    subprocess.run(["groupadd", "--force", GROUP], check=True)
    people = {}
    try:
        for short, account in names.items():
            home = place / "home" / short
            options = ["--create-home", "--home-dir", str(home), "--shell", "/bin/sh", "--user-group"]
            subprocess.run(["useradd", *options, account], check=True, capture_output=True)
            home.chmod(0o700)
            people[short] = Person(account, home.stat().st_uid, home, place / "run" / "machine.sock")
        subprocess.run(["usermod", "--append", "--groups", GROUP, names["ann"]], check=True)
        yield people
    finally:
        for account in names.values():
            subprocess.run(["userdel", "--force", account], check=False, capture_output=True)
            subprocess.run(["groupdel", account], check=False, capture_output=True)
        subprocess.run(["groupdel", GROUP], check=False, capture_output=True)


@pytest.fixture(scope="module")
def administrator(place: Path, people: dict[str, Person]) -> Iterator[Caller]:
    caller = Caller(place / "data", place)
    socket = str(place / "run" / "machine.sock")
    server = Server(caller.data_dir, "--shared", "--machine-socket", socket, "--bind-users", "equal-names")
    server.start()
    caller.ok("user", "create", "ann@lab.example", "--machine-user", people["ann"].account)
    caller.ok("user", "create", f"{people['bob'].account}@lab.example")
    for mail in ("ann@lab.example", f"{people['bob'].account}@lab.example"):
        caller.ok("user", "grant", mail, "--project", "default")
    yield caller
    server.close()


def test_a_job_runs_as_the_account_in_the_folder_of_the_call(administrator: Caller, people: dict[str, Person]) -> None:
    ann = people["ann"]
    work = ann.home / "work"
    work.mkdir()
    os.chown(work, ann.uid, ann.uid)
    script = 'id -u; id -Gn | tr " " "\\n" | sort | head -1; pwd; echo $HOME; umask 077; echo result > out.txt'
    called = ann("run", "--", "sh", "-c", script, folder=work)
    assert called.code == 0, called
    assert called.out == f"{ann.uid}\n{GROUP}\n{work}\n{ann.home}\n"
    assert (work / "out.txt").read_text() == "result\n"
    assert (work / "out.txt").stat().st_uid == ann.uid


def test_a_folder_that_jobs_do_not_see_is_refused(administrator: Caller, people: dict[str, Person]) -> None:
    """Each job has its own /tmp, so what it wrote into a folder there was lost without a word."""
    ann = people["ann"]
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o777)
        refused = ann("run", "--", "touch", "out.txt", folder=folder)
        assert refused.code == 2, refused
        assert f"has its own /tmp, so it would not see {folder}" in refused.err
        called = ann("run", "--working-dir", str(ann.home), "--", "pwd", folder=folder)
        assert called.out == f"{ann.home}\n", called


def test_doctor_checks_the_server_that_people_use(administrator: Caller, people: dict[str, Person]) -> None:
    called = people["ann"]("doctor")
    assert called.code == 0, called
    assert "ok      Server   the shared server of this machine answers at http" in called.out
    assert "fairlead server start" not in called.out


def test_people_reach_the_folder_where_the_socket_is_by_default(administrator: Caller) -> None:
    """The server keeps files of its own there too; they are closed, the folder is not."""
    folder = Path(DEFAULT_SOCKET).parent
    assert folder.stat().st_mode & 0o005 == 0o005
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir() if path.is_file())


def test_a_socket_that_nobody_could_reach_is_refused(place: Path) -> None:
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    caller = Caller(place / "other-data", place)
    start = caller("server", "start", "--", "--shared", "--port", "0", "--machine-socket", str(closed / "s" / "m.sock"))
    assert start.code == 1
    assert f"the folder {closed} is closed to other accounts. Open it (chmod o+x {closed})" in start.err


def test_a_named_data_folder_means_its_server(administrator: Caller, people: dict[str, Person]) -> None:
    ann = people["ann"]
    assert ann("whoami").out.startswith("User:    ann@lab.example\n")
    own = ann("whoami", FAIRLEAD_DATA_DIR=str(ann.home / "own"))
    assert f"No server is running on this machine (data folder {ann.home / 'own'})" in own.err


def test_the_rule_of_equal_names_binds_too(administrator: Caller, people: dict[str, Person]) -> None:
    called = people["bob"]("run", "--", "sh", "-c", "id -un; pwd")
    assert called.out == f"{people['bob'].account}\n{people['bob'].home}\n", called


def test_files_of_others_and_of_the_server_stay_closed(administrator: Caller, people: dict[str, Person]) -> None:
    ann, bob = people["ann"], people["bob"]
    secret = ann.home / "secret"
    secret.write_text("of ann")
    secret.chmod(0o600)
    os.chown(secret, ann.uid, ann.uid)
    closed = bob("run", "--", "sh", "-c", f"cat {secret} || ls {ann.home} || ls {administrator.data_dir}")
    assert closed.code != 0, closed
    assert "of ann" not in closed.out
    assert closed.out.count("Permission denied") == 3
    assert ann("run", "--", "cat", str(secret)).out == "of ann"


def test_variables_and_input_of_the_shell_go_along(administrator: Caller, people: dict[str, Person]) -> None:
    called = people["ann"]("run", "--", "sh", "-c", 'cat; echo "$COLOUR"', stdin="piped\n", COLOUR="red")
    assert called.out == "piped\nred\n", called


def test_who_is_bound_to_no_user_is_not_signed_in(administrator: Caller, people: dict[str, Person]) -> None:
    called = people["eve"]("list")
    assert called.code != 0, called
    assert "No user is bound to the account fl-eve" in called.err


def test_others_open_no_session_in_a_job_of_an_account(administrator: Caller, people: dict[str, Person]) -> None:
    ann, bob = people["ann"], people["bob"]
    assert ann("run", "--detach", "--name", "long", "--", "sleep", "600").code == 0
    assert ann("wait", "long", "--for", "Running", "--timeout", "60s").code == 0
    refused = bob("exec", "long", "--", "id", "-un")
    assert refused.code != 0, refused
    assert "runs as the account" in refused.err
    assert ann("exec", "long", "--", "id", "-un").out == "fl-ann\n"
    assert ann("training", "delete", "long").code == 0


def test_an_unbound_user_runs_nothing_as_that_account(administrator: Caller, people: dict[str, Person]) -> None:
    ann = people["ann"]
    assert ann("run", "--detach", "--name", "later", "--", "sleep", "600").code == 0
    assert ann("wait", "later", "--for", "Running", "--timeout", "60s").code == 0
    assert ann("training", "suspend", "later").code == 0
    assert ann("wait", "later", "--for", "Stopped", "--timeout", "60s").code == 0
    administrator.ok("user", "bind", "ann@lab.example")
    administrator.ok("training", "resume", "later")
    administrator("wait", "later", "--for", "Failed", "--timeout", "60s")
    page = administrator.ok("describe", "later")
    assert "no longer bound to the account fl-ann" in page
    assert "not sign you in" in ann("list").err
    administrator.ok("user", "bind", "ann@lab.example", "--machine-user", ann.account)
    assert json.loads(administrator.ok("user", "describe", "ann@lab.example", "--json"))["machineUser"] == ann.account


def test_root_and_accounts_of_others_are_refused(administrator: Caller, people: dict[str, Person]) -> None:
    for account in ("root", people["ann"].account, "no account"):
        refused = administrator("user", "create", "mallory@lab.example", "--machine-user", account)
        assert refused.code != 0, refused
        assert "--machine-user: is" in refused.err


def test_an_account_that_does_not_exist_is_pointed_out(administrator: Caller) -> None:
    called = administrator("user", "create", "carl@lab.example", "--machine-user", "fl-missing")
    assert called.code == 0
    assert "This machine has no account fl-missing." in called.err
    assert "fl-missing" in administrator.ok("user", "list", "-o", "wide")
    administrator.ok("user", "delete", "carl@lab.example")
