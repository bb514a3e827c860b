"""A picture of waits by project, as SVG text."""

from __future__ import annotations

from html import escape

from fairlead.simulator.report import HistoryAnswer

_ROW, _LEFT, _WIDTH = 28, 180, 640
_COLORS = ("#9aa5b1", "#2f6fde")


def render_svg(answer: HistoryAnswer) -> str:
    """Bars of the 90 % wait of each project, without and with the changes."""
    reports = [answer.before, *([answer.after] if answer.after is not None else [])]
    # A project that submitted nothing has no wait.
    rows = [number for number, each in enumerate(answer.before.projects) if each.workloads]
    finite = [each.wait_p90 for report in reports for each in report.projects if each.wait_p90 != float("inf")]
    longest = max(finite, default=0) or 1
    height = _ROW * (len(rows) + 2)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 120}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        '<text x="8" y="18">Wait until 90 % of the workloads have started, by project</text>',
    ]
    for row, place_in_report in enumerate(rows, start=1):
        top = row * _ROW
        name = answer.before.projects[place_in_report].project
        lines.append(f'<text x="8" y="{top + 16}">{escape(name[:24])}</text>')
        for number, report in enumerate(reports):
            wait = report.projects[place_in_report].wait_p90
            part = 1.0 if wait == float("inf") else wait / longest
            top_of_bar = top + 4 + number * 11
            lines.append(
                f'<rect x="{_LEFT}" y="{top_of_bar}" width="{max(1, round(part * _WIDTH))}" height="9" '
                f'fill="{_COLORS[number]}"><title>{format_wait(wait)}</title></rect>'
            )
            lines.append(
                f'<text x="{_LEFT + max(1, round(part * _WIDTH)) + 4}" y="{top_of_bar + 9}" font-size="9">'
                f"{format_wait(wait)}</text>"
            )
    return "\n".join([*lines, "</svg>"]) + "\n"


def format_wait(seconds: float) -> str:
    """A wait in the largest unit that fits."""
    if seconds == float("inf"):
        return "never"
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f}{unit}"
    return f"{seconds:.0f}s"
