"""Records docs/assets/session.svg, the terminal on the documentation's front page: real commands on a real server.

`python -m scripts.record_session` runs them in a new data folder and writes what they printed. Call it again when their
output has changed.
"""

import html
import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "assets" / "session.svg"
NODE = "lab:cpu=8,memory=32Gi,gpus=2"
COMMANDS = (
    "fairlead run -- python3 -c \"print('hello from a training')\"",
    "fairlead run --detach --name train --gpu 2 -- python3 train.py",
    "fairlead run --detach --name eval --gpu 1 -- python3 eval.py",
    "fairlead why eval",
)
#: Workloads outlive their server, so this one is deleted first.
CLEAN_UP = ("fairlead training delete train", "fairlead wait train --for Deleted", "fairlead server stop")
PROGRAMS = {"train.py": "import time; time.sleep(600)", "eval.py": "print('accuracy 0.93')"}

COLUMNS = 100
CHARACTER, LINE, MARGIN, BAR = 8.4, 20, 20, 36
#: Seconds between two lines, after a command, and for a typed character.
PACE, PAUSE, KEY = 0.06, 1.2, 0.03
COLORS = {"31": "#f87171", "32": "#4ade80", "33": "#fbbf24", "34": "#60a5fa", "35": "#c084fc", "36": "#22d3ee"}
STYLE = """
text { font: 14px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #e5e7eb; white-space: pre }
.output { opacity: 0; animation: show 1ms forwards }
.typed { clip-path: inset(0 100% 0 0); animation: type 1s forwards }
@keyframes show { to { opacity: 1 } }
@keyframes type { to { clip-path: inset(0 0 0 0) } }
@media (prefers-reduced-motion: reduce) { .output, .typed { animation: none; opacity: 1; clip-path: none } }
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder, "work")
        work.mkdir()
        for name, text in PROGRAMS.items():
            (work / name).write_text(text)
        environment = {
            **os.environ,
            "FAIRLEAD_DATA_DIR": str(Path(folder, "data")),
            "PATH": f"{ROOT / '.venv/bin'}{os.pathsep}{os.environ['PATH']}",
            "TERM": "xterm-256color",
            "COLUMNS": str(COLUMNS),
        }
        server = ["fairlead", "server", "start", "--", "--node", NODE]
        subprocess.run(server, env=environment, cwd=work, check=True, capture_output=True)
        try:
            session = [(command, record(command, work, environment)) for command in COMMANDS]
        finally:
            for command in CLEAN_UP:
                subprocess.run(command.split(), env=environment, cwd=work, check=True, capture_output=True)
    PICTURE.write_text(render(session))
    return 0


def record(command: str, folder: Path, environment: dict[str, str]) -> list[str]:
    """What a command prints to a terminal, line by line, as it stands there at the end."""
    reader, writer = pty.openpty()
    process = subprocess.Popen(
        ["sh", "-c", command], stdin=writer, stdout=writer, stderr=writer, cwd=folder, env=environment
    )
    os.close(writer)
    output = b""
    try:
        while piece := os.read(reader, 65536):
            output += piece
    except OSError:
        # Linux says so when the last writer has closed a terminal.
        pass
    os.close(reader)
    if process.wait():
        raise SystemExit(f"{command} failed:\n{output.decode()}")
    lines = output.decode().replace("\r\n", "\n").rstrip("\n").split("\n")
    return [line.rpartition("\r")[2].replace("\x1b[K", "") for line in lines]


def render(session: list[tuple[str, list[str]]]) -> str:
    rows = list(render_rows(session))
    width = round(COLUMNS * CHARACTER + 2 * MARGIN)
    height = BAR + sum(1 + len(output) for _, output in session) * LINE + MARGIN
    dots = "".join(
        f'<circle cx="{MARGIN + 18 * at}" cy="18" r="6" fill="{color}"/>'
        for at, color in enumerate(("#f87171", "#fbbf24", "#4ade80"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
        f"<style>{STYLE}</style>\n"
        f'<rect width="{width}" height="{height}" rx="10" fill="#111827"/>\n{dots}\n' + "\n".join(rows) + "\n</svg>\n"
    )


def render_rows(session: list[tuple[str, list[str]]]) -> Iterator[str]:
    now, height = 0.5, BAR + LINE
    for command, output in session:
        seconds = len(command) * KEY
        timing = f"animation: type {seconds:.2f}s steps({len(command)}) {now:.2f}s forwards"
        prompt = '<tspan fill="#4ade80">$ </tspan>'
        yield f'<text class="typed" style="{timing}" x="{MARGIN}" y="{height}">{prompt}{html.escape(command)}</text>'
        now, height = now + seconds + 0.3, height + LINE
        for line in output:
            timing = f"animation-delay: {now:.2f}s"
            yield f'<text class="output" style="{timing}" x="{MARGIN}" y="{height}">{paint(line)}</text>'
            now, height = now + PACE, height + LINE
        now += PAUSE


def paint(line: str) -> str:
    """A line with the terminal's colours as the picture's; what a terminal of that width would cut is cut."""
    parts = re.split(r"\x1b\[([0-9;]*)m", line)
    painted, color, room = "", "", COLUMNS
    for at, part in enumerate(parts):
        if at % 2:
            color = COLORS.get(part, "#9ca3af" if part in ("2", "90") else "")
            continue
        text, room = part[:room], max(0, room - len(part))
        painted += f'<tspan fill="{color}">{html.escape(text)}</tspan>' if color else html.escape(text)
    return painted


if __name__ == "__main__":
    sys.exit(main())
