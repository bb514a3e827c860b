"""`url`: prints links that open a workload's exposed URLs in a browser, signed in as the caller."""

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.flags import PROJECT, Flag
from fairlead.cli.session.session import ServerSession


def commands(_noun: str) -> tuple[Command, ...]:
    return (
        Command(
            "",
            "Print links that open a workload's URLs",
            _links,
            (PROJECT, Flag("plain", "Print the URLs themselves, without signing in", "boolean")),
            "NAME",
            1,
            1,
            details="Each link works once, within two minutes, and signs the browser in to this URL only.",
            completes="workload",
        ),
    )


def _links(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    try:
        workload = session.workload(invocation.names[0])
        links = session.client.request("POST", f"/api/v1/workloads/{workload['id']}/sign-in-links")["links"]
        for link in links:
            session.console.data(link["url"] if invocation.get("plain") else link["signInUrl"])
        if not links:
            session.console.complain(f"{workload['name']} exposes no URL that you can open; it is {workload['phase']}.")
        return OK if links else FAILED
    finally:
        session.close()
