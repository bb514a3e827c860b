"""`explain KIND[.FIELD…]`: what a field means, from the same declarations that the server reads requests by."""

import json

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import NOT_FOUND, OK
from fairlead.cli.flags import Flag

_FLAGS = (Flag("output", "Output format", short="o", choices=("text", "json"), default="text"),)
_DETAILS = """Examples:
  fairlead explain trainingworkload.spec
  fairlead explain trainingworkload.spec.pvcs.size
  fairlead explain training.spec.nodeAffinityRequired"""


def commands(_noun: str) -> tuple[Command, ...]:
    return (
        Command(
            "", "Explain a field of a workload", _run, _FLAGS, "KIND[.FIELD...]", fewest=1, most=1, details=_DETAILS
        ),
    )


def _run(invocation: Invocation) -> int:
    around = invocation.surroundings
    explanations = around.load("explain")
    try:
        found = explanations.explain(invocation.names[0])
    except explanations.Unknown as unknown:
        around.stderr.write(f"fairlead: {unknown}\n")
        return NOT_FOUND
    if invocation.get("output") == "json":
        members = {name: getattr(found, name) for name in found.__struct_fields__}
        around.stdout.write(json.dumps({name: value for name, value in members.items() if value}, indent=2) + "\n")
    else:
        around.stdout.write(explanations.render_text(found))
    return OK
