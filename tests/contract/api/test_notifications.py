"""Notifications with a real web server and a real mail server: who is told what, signatures, retries, refusals."""

import contextlib
import email.message
import hmac
import http.server
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Message as MailHandler

from fairlead.cli.exit_codes import OK
from fairlead.control.notifications.dispatch import FIRST_RETRY, MAX_ATTEMPTS, Notifier
from fairlead.control.notifications.rules import MAX_RULES
from fairlead.control.notifications.settings import NotificationSettings, is_allowed_address
from fairlead.model.records.event import Event
from fairlead.model.records.phase import Phase
from fairlead.store.base import Change, Put
from fairlead.store.collections import NOTIFICATION_RULES
from tests.builders import workload
from tests.contract.api.api_server import Answer, ApiServer
from tests.unit.cli.calling import call

RULES = "/api/v1/notification-rules"


class Hook:
    """A web server that remembers what it was sent."""

    def __init__(self) -> None:
        self.received: list[tuple[dict[str, str], bytes]] = []
        self.status = 200
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook?x=1"

    def __enter__(self) -> "Hook":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def texts(self) -> list[str]:
        return [json.loads(body)["text"] for _, body in self.received]

    def _handler(hook) -> type[http.server.BaseHTTPRequestHandler]:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                hook.received.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(hook.status)
                if hook.status == 302:
                    self.send_header("location", hook.url)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Tests print nothing."""

        return Handler


class Mails(MailHandler):
    def __init__(self) -> None:
        super().__init__()
        self.received: list[email.message.Message] = []

    def handle_message(self, message: email.message.Message) -> None:
        self.received.append(message)


@pytest.fixture
def hook() -> Iterator[Hook]:
    with Hook() as hook:
        yield hook


class Desk:
    """A server, its notifier, and events of workloads."""

    def __init__(self, api: ApiServer, **members: Any) -> None:
        self.api = api
        api.context.settings = msgspec.structs.replace(api.context.settings, sends_mail="smtp_url" in members)
        self.notifier = Notifier(api.context, NotificationSettings(**{"allowed": ("127.0.0.1",), **members}))

    def add(self, target: str, token: str | None = None, **members: Any) -> Answer:
        body = {"channel": "webhook", "target": target, "on": ["started", "failed"], **members}
        return self.api.call("POST", RULES, body, token=token)

    def tell(self, name: str, phase: Phase, *, by: str = "fairlead", project: str = "1", message: str = "") -> None:
        """Record a workload in a phase, with the event that the loop would write."""
        self.api.clock.now += 10
        at = self.api.clock.now
        record = workload(name, project_id=project, created_by=by, phase=phase, phase_updated_at=at)
        event = Event(
            at=at,
            subject="workloads",
            subject_id=record.id,
            project_id=project,
            reason=phase,
            phase=phase,
            message=message,
        )
        self.api.put(record, events=(event,))

    def turn(self, later: int = 2000) -> None:
        self.api.clock.now += later
        self.api.do(self.notifier.run_once())

    def errors(self, token: str | None = None) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = self.api.call("GET", f"{RULES}/errors", token=token).json["deliveries"]
        return listed


@pytest.fixture
def desk(make_api: Any) -> Desk:
    return Desk(make_api())


def user_of(api: ApiServer, mail: str, role: str = "") -> str:
    """A user with a role in the first project; returns a token."""
    made = api.call("POST", "/api/v1/users", {"email": mail, "resetPassword": False}).json
    if role:
        roles = {one["name"]: one["id"] for one in api.get("/api/v1/authorization/roles")}
        scope = {"scopeId": "1", "scopeType": "project", "clusterId": api.cluster_id}
        rule = {"subjectId": mail, "subjectType": "user", "roleId": roles[role], **scope}
        assert api.call("POST", "/api/v1/authorization/access-rules", rule).status == 201
    body = {"grantType": "password", "username": mail, "password": made["tempPassword"]}
    return str(api.call("POST", "/api/v1/token", body, token="").json["accessToken"])


def test_a_webhook_is_called_once_and_signed(desk: Desk, hook: Hook) -> None:
    made = desk.add(hook.url)
    assert made.status == 201, made
    desk.tell("train", Phase.RUNNING)
    desk.tell("other", Phase.COMPLETED)
    for _ in range(3):
        desk.turn()
    ((headers, body),) = hook.received
    members = json.loads(body)
    assert (members["event"], members["workload"], members["project"]) == ("started", "train", "default")
    assert members["text"] == "train in project default has started"
    stamp, digest = (part.partition("=")[2] for part in headers["x-fairlead-signature"].split(","))
    want = hmac.new(made.json["signingKey"].encode(), f"{stamp}.".encode() + body, "sha256").hexdigest()
    assert digest == want
    assert headers["x-fairlead-delivery"]


def test_what_happened_to_a_workload_is_told_in_order_with_its_phase_then(desk: Desk, hook: Hook) -> None:
    desk.add(hook.url, on=["started", "completed"])
    at = desk.api.clock.now
    record = workload("train", project_id="1", created_by="fairlead", phase=Phase.COMPLETED, phase_updated_at=at)
    about: dict[str, Any] = {
        "at": at,
        "subject": "workloads",
        "subject_id": record.id,
        "project_id": "1",
        "message": "",
    }
    phases = (Phase.RUNNING, Phase.COMPLETED)
    desk.api.put(record, events=tuple(Event(reason=phase, phase=phase, **about) for phase in phases))
    desk.turn()
    told = [json.loads(body) for _, body in hook.received]
    assert [(one["event"], one["phase"]) for one in told] == [("started", "Running"), ("completed", "Completed")]


def test_the_url_and_the_key_are_never_shown_again(desk: Desk, hook: Hook) -> None:
    key = desk.add(hook.url).json["signingKey"]
    listed = desk.api.call("GET", RULES)
    assert key.encode() not in listed.body
    assert b"hook?x=1" not in listed.body
    assert listed.json["rules"][0]["target"] == "127.0.0.1"


def test_slack_gets_escaped_text(desk: Desk, hook: Hook) -> None:
    desk.add(hook.url, channel="slack", template="<!channel> $workload of $user: $event & more")
    desk.tell("train", Phase.FAILED)
    desk.turn()
    assert hook.texts() == ["&lt;!channel&gt; train of fairlead: failed &amp; more"]


@contextlib.contextmanager
def mail_server(mails: Mails) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    server = Controller(mails, "127.0.0.1", port)
    server.start()
    try:
        yield port
    finally:
        server.stop()


def test_mail_arrives(make_api: Any) -> None:
    mails = Mails()
    with mail_server(mails) as port:
        desk = Desk(
            make_api(),
            smtp_url=f"smtp://127.0.0.1:{port}",
            smtp_from="fairlead@example.com",
            public_url="https://f.example",
        )
        assert desk.add("ann@example.com", channel="email").status == 201
        desk.tell("train", Phase.FAILED)
        desk.turn()
    (mail,) = mails.received
    assert (mail["To"], mail["From"], mail["Subject"]) == ("ann@example.com", "fairlead@example.com", "train: failed")
    text = mail.get_payload(decode=True)
    assert isinstance(text, bytes)
    lines = text.decode().splitlines()
    assert lines == ["train in project default has failed", "https://f.example/ui/workloads/id-train"]


def show(desk: Desk, verb: str, home: Path) -> str:
    """What the command line prints."""
    url = f"http://127.0.0.1:{desk.api.port}"
    shown = call("notification", verb, home=home, FAIRLEAD_URL=url, FAIRLEAD_TOKEN=desk.api.token)
    assert shown.code == OK, shown.err
    return shown.out


def test_the_list_names_projects(desk: Desk, hook: Hook, tmp_path: Path) -> None:
    desk.add(hook.url)
    assert "your own workloads" in show(desk, "list", tmp_path)
    desk.add(hook.url, projectId="1")
    assert "  default\n" in show(desk, "list", tmp_path)


def test_a_failed_delivery_is_repeated_and_listed_until_it_arrives(desk: Desk, hook: Hook, tmp_path: Path) -> None:
    desk.add(hook.url)
    hook.status = 500
    desk.tell("train", Phase.FAILED)
    desk.turn()
    desk.turn()
    assert len(hook.received) == 1, "the second attempt waits"
    (error,) = desk.errors()
    assert (error["attempts"], error["workloadName"]) == (1, "train")
    assert "answered 500" in error["error"]
    assert "answered 500" in show(desk, "errors", tmp_path)
    # Another server goes on where this one stopped.
    desk.notifier = Notifier(desk.api.context, NotificationSettings(allowed=("127.0.0.0/8",)))
    hook.status = 200
    desk.turn(FIRST_RETRY)
    assert len(hook.received) == 2
    assert hook.received[0][0]["x-fairlead-delivery"] == hook.received[1][0]["x-fairlead-delivery"]
    assert desk.errors() == []


def test_a_delivery_is_given_up_in_the_end(desk: Desk, hook: Hook) -> None:
    desk.add(hook.url)
    hook.status = 302
    desk.tell("train", Phase.FAILED)
    for _ in range(MAX_ATTEMPTS + 3):
        desk.turn(3_700_000)
    assert len(hook.received) == MAX_ATTEMPTS, "redirects are not followed"
    assert desk.errors()[0]["nextAttempt"] is None


def test_a_deleted_rule_sends_nothing(desk: Desk, hook: Hook) -> None:
    id = desk.add(hook.url).json["id"]
    desk.tell("train", Phase.FAILED)
    assert desk.api.call("DELETE", f"{RULES}/{id}").status == 204
    desk.turn()
    assert hook.received == []


def test_rules_go_with_their_owner(desk: Desk, hook: Hook) -> None:
    token = user_of(desk.api, "ann@example.com", "L1 researcher")
    assert desk.add(hook.url, token).status == 201
    ann = next(user for user in desk.api.get("/api/v1/users") if user["username"] == "ann@example.com")
    assert desk.api.call("DELETE", f"/api/v1/users/{ann['id']}").status in (200, 204)
    assert desk.api.get(RULES)["rules"] == []


def test_people_are_notified_about_their_workloads_while_they_may_see_them(desk: Desk, hook: Hook) -> None:
    token = user_of(desk.api, "ann@example.com", "L1 researcher")
    assert desk.add(hook.url, token).status == 201
    desk.tell("mine", Phase.RUNNING, by="ann@example.com")
    desk.tell("other", Phase.RUNNING, by="bob@example.com")
    desk.turn()
    assert hook.texts() == ["mine in project default has started"]
    rules = desk.api.get("/api/v1/authorization/access-rules")["accessRules"]
    ann = next(rule for rule in rules if rule["subjectId"] == "ann@example.com")
    desk.api.call("DELETE", f"/api/v1/authorization/access-rules/{ann['id']}")
    desk.tell("later", Phase.RUNNING, by="ann@example.com")
    desk.turn()
    assert len(hook.received) == 1


def test_rules_of_a_project_need_the_right_to_change_it(desk: Desk, hook: Hook) -> None:
    token = user_of(desk.api, "ann@example.com", "L1 researcher")
    assert desk.add(hook.url, token, projectId="1").status == 403
    assert desk.add(hook.url, user_of(desk.api, "eve@example.com"), projectId="1").status == 404
    assert desk.add(hook.url, projectId="1").status == 201
    desk.tell("anybody", Phase.RUNNING, by="bob@example.com")
    desk.turn()
    assert len(hook.received) == 1


def test_rules_and_errors_of_others_are_not_there(desk: Desk, hook: Hook) -> None:
    id = desk.add(hook.url).json["id"]
    hook.status = 500
    desk.tell("train", Phase.FAILED)
    desk.turn()
    token = user_of(desk.api, "ann@example.com", "L1 researcher")
    assert desk.api.call("GET", RULES, token=token).json["rules"] == []
    assert desk.errors(token) == []
    assert desk.api.call("DELETE", f"{RULES}/{id}", token=token).status == 404
    assert desk.api.call("POST", f"{RULES}/{id}/test", token=token).status == 404


def test_a_test_message_arrives(desk: Desk, hook: Hook) -> None:
    id = desk.add(hook.url).json["id"]
    assert desk.api.call("POST", f"{RULES}/{id}/test").status == 202
    desk.turn()
    assert json.loads(hook.received[0][1])["event"] == "test"


def test_evictions_and_long_waits_are_sent(desk: Desk, hook: Hook) -> None:
    desk.add(hook.url, on=["evicted", "waiting"], waitingSeconds=60)
    desk.tell("train", Phase.PENDING, message="Preempted; waiting to be scheduled again")
    desk.turn()
    assert len(hook.received) == 1
    for _ in range(3):
        desk.turn(61_000)
    assert [json.loads(body)["event"] for _, body in hook.received] == ["evicted", "waiting"]


def test_what_happened_before_the_rule_is_not_sent(desk: Desk, hook: Hook) -> None:
    desk.tell("before", Phase.FAILED)
    desk.api.clock.now += 1
    desk.add(hook.url)
    desk.tell("after", Phase.FAILED)
    desk.turn()
    assert hook.texts() == ["after in project default has failed"]


def test_a_reached_quota_is_reported_once(desk: Desk, hook: Hook) -> None:
    project = desk.api.get("/api/v1/org-unit/projects/1")
    resources = [{**project["resources"][0], "gpu": {"deserved": 2, "limit": None, "overQuotaWeight": 2}}]
    assert desk.api.call("PUT", "/api/v1/org-unit/projects/1", {"resources": resources}).status == 200
    assert desk.add(hook.url, on=["quota"], projectId="1").status == 201
    steps = ((1.5, 0), (2.0, 1), (2.0, 1), (1.0, 1), (4.0, 2))
    for version, (gpus, want) in enumerate(steps, 1):
        desk.api.put(workload("train", version=version, phase=Phase.RUNNING, allocated_gpu=gpus))
        desk.turn()
        assert len(hook.received) == want, gpus
    text = "Project default uses its whole quota of GPUs: it uses 2 GPUs, its quota is 2"
    assert hook.texts()[0] == text
    members = json.loads(hook.received[0][1])
    assert (members["event"], members["project"], members["workload"]) == ("quota", "default", "")


def test_an_answer_that_never_ends_does_not_hold_up_the_others(desk: Desk, hook: Hook) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        desk.add(f"http://127.0.0.1:{silent.getsockname()[1]}/")
        desk.add(hook.url)
        desk.tell("train", Phase.FAILED)
        desk.turn()
    assert len(hook.received) == 1
    assert "timed out" in desk.errors()[0]["error"]


def test_a_password_is_not_sent_without_encryption(make_api: Any, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("secret")
    with mail_server(Mails()) as port:
        desk = Desk(
            make_api(),
            smtp_url=f"smtp://ann@127.0.0.1:{port}",
            smtp_from="f@example.com",
            smtp_password_file=str(password),
        )
        desk.add("ann@example.com", channel="email")
        desk.tell("train", Phase.FAILED)
        desk.turn()
    assert "no TLS" in desk.errors()[0]["error"]


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"channel": "pigeon"}, "channel"),
        ({"target": "ftp://example.com"}, "target"),
        ({"target": "https://user:pass@example.com"}, "target"),
        ({"target": "https://[::1"}, "target"),
        ({"target": "https://example.com:99999"}, "target"),
        ({"target": "https://exämple.com"}, "target"),
        ({"target": "https://example.com/\r\nx: y"}, "target"),
        ({"channel": "email", "target": "a@b.example\nBcc: c@d.example"}, "target"),
        ({"on": []}, "on"),
        ({"on": ["everything"]}, "on"),
        ({"on": ["quota"]}, "on"),
        ({"waitingSeconds": 1}, "waitingSeconds"),
        ({"template": "$password"}, "template"),
        ({"template": "100 $"}, "template"),
    ],
)
def test_wrong_rules_are_refused_with_their_field(desk: Desk, members: dict[str, Any], field: str) -> None:
    answer = desk.add(**{"target": "https://example.com/", **members})
    assert answer.status == 400, answer
    assert field in answer.json["details"]


def test_mail_is_refused_without_a_mail_server(desk: Desk) -> None:
    answer = desk.add("ann@example.com", channel="email")
    assert answer.status == 400
    assert "this server has no mail server" in answer.json["details"]
    assert "--smtp-url" in answer.json["details"]


def test_ordinary_users_send_mail_to_themselves_only(make_api: Any) -> None:
    desk = Desk(make_api(), smtp_url="smtp://127.0.0.1:9", smtp_from="fairlead@example.com")
    token = user_of(desk.api, "ann@example.com", "L1 researcher")
    assert desk.add("bob@example.com", token, channel="email").status == 400
    assert desk.add("ann@example.com", token, channel="email").status == 201


def test_private_addresses_are_refused_unless_the_operator_allows_them(make_api: Any, hook: Hook) -> None:
    desk = Desk(make_api(), allowed=())
    desk.add(hook.url)
    desk.add(hook.url.replace("127.0.0.1", "localhost"))
    desk.add(hook.url.replace("127.0.0.1", "[::ffff:127.0.0.1]"))
    desk.tell("train", Phase.FAILED)
    desk.turn()
    assert hook.received == []
    assert len(desk.errors()) == 3
    assert all("private network" in error["error"] for error in desk.errors())


@pytest.mark.parametrize(
    ("address", "allowed", "want"),
    [
        ("93.184.216.34", (), True),
        ("2606:2800:220:1::1", (), True),
        ("127.0.0.1", (), False),
        ("10.0.0.1", (), False),
        ("169.254.169.254", (), False),
        ("100.64.0.1", (), False),
        ("0.0.0.0", (), False),
        ("224.0.0.1", (), False),
        ("::1", (), False),
        ("fe80::1", (), False),
        ("fd00::1", (), False),
        ("::ffff:10.0.0.1", (), False),
        ("2002:7f00:1::", (), False),
        ("64:ff9b::7f00:1", (), False),
        ("64:ff9b:1::7f00:1", (), False),
        ("::7f00:1", (), False),
        ("::ffff:0:7f00:1", (), False),
        ("fec0::1", (), False),
        ("2001:4860:4860::8888", (), True),
        ("::ffff:8.8.8.8", (), True),
        ("10.0.0.1", ("10.0.0.0/8",), True),
        ("10.0.0.1", ("host.example",), True),
        ("10.0.0.1", ("other.example", "192.168.0.0/16"), False),
    ],
)
def test_which_addresses_a_webhook_may_reach(address: str, allowed: tuple[str, ...], want: bool) -> None:
    assert is_allowed_address(NotificationSettings(allowed=allowed), "host.example", address) is want


def test_an_address_that_the_mail_library_cannot_read_does_not_block_others(make_api: Any, hook: Hook) -> None:
    desk = Desk(make_api(), smtp_url="smtp://127.0.0.1:9", smtp_from="fairlead@example.com")
    assert desk.add("a@[", channel="email").status == 400
    bad = desk.add("a@example.com", channel="email").json["id"]
    rule = desk.api.do(desk.api.context.store.get(NOTIFICATION_RULES, bad))
    assert rule is not None
    stored = msgspec.structs.replace(rule, version=2, target="a@[")
    desk.api.do(desk.api.context.store.commit(Change(writes=(Put(NOTIFICATION_RULES, stored),))))
    desk.add(hook.url)
    desk.tell("one", Phase.RUNNING)
    desk.turn()
    assert len(hook.received) == 1
    assert [one["error"] for one in desk.errors()] == ["It cannot be sent: AttributeError"]


def test_a_rule_is_not_tested_again_and_again(desk: Desk, hook: Hook) -> None:
    id = desk.add(hook.url).json["id"]
    assert [desk.api.call("POST", f"{RULES}/{id}/test").status for _ in range(3)] == [202, 429, 429]
    desk.turn(later=11_000)
    assert desk.api.call("POST", f"{RULES}/{id}/test").status == 202


def test_rules_of_others_do_not_use_up_those_of_an_administrator(desk: Desk, hook: Hook) -> None:
    token = user_of(desk.api, "ann@example.com")
    assert {desk.add(hook.url, token).status for _ in range(MAX_RULES)} == {201}
    assert desk.add(hook.url, token).status == 400
    assert desk.add(hook.url).status == 201
