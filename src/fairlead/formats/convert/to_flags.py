"""Writes a workload as a command line. Called by `convert` and by the server."""

from fairlead.formats.flags.command_line import render_command, render_line
from fairlead.formats.flags.entry import FlagEntry
from fairlead.formats.intermediate import ConversionResult, IntermediateWorkload, below_spec
from fairlead.formats.losses import Loss
from fairlead.formats.plain import Plain


def render(
    workload: IntermediateWorkload, program: str = "fairlead", table: list[FlagEntry] | None = None
) -> ConversionResult:
    """The command line; `table` is the result of `flag_table` for the kind, if the caller has it already."""
    command, spec = _command(workload)
    flags, arguments, losses = render_command(workload.kind, spec, table)
    losses = workload.losses + below_spec(workload.kind, losses)
    line = [program, *command, "submit"]
    if workload.is_prefix:
        line += ["--name-prefix", workload.name]
        reason = "the command line adds a number to a prefix, not random characters"
        losses.append(Loss(path="useGivenNameAsPrefix", reason=reason, value=True))
    else:
        line.append(workload.name)
    if workload.project:
        line += ["-p", workload.project]
    if not workload.is_active:
        losses.append(
            Loss(path="spec.active", reason="a command always submits; suspend the workload afterwards", value=False)
        )
    whole = [*line, *flags, *(["--", *arguments] if arguments else [])]
    return ConversionResult(text=render_line(line, flags, arguments), plain=whole, losses=losses)


def _command(workload: IntermediateWorkload) -> tuple[tuple[str, ...], Plain]:
    """The words of the command, and the spec for the flags: the command of a sub-type sets a member by itself."""
    for command, (member, value) in workload.kind.subtypes:
        if workload.spec.get(member) == value:
            return command, {name: inner for name, inner in workload.spec.items() if name != member}
    return workload.kind.command, workload.spec
