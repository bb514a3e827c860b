"""What the loop tells of itself to `/metrics`. Called by `app` at every scrape; answers from memory."""

from fairlead.api.server.metrics import Sample
from fairlead.control.loop.reconcile import Reconciler


def loop_samples(loop: Reconciler) -> list[Sample]:
    figures = loop.figures
    board = loop.board
    pods = [Sample("fairlead_pods", n, {"phase": phase}) for phase, n in board.count_pods().items()]
    return [
        *pods,
        Sample("fairlead_open_workloads", len(board.entries), help="Workloads neither finished nor gone"),
        Sample("fairlead_loop_cycles_total", figures.cycles, help="Turns of the loop", type="counter"),
        Sample("fairlead_loop_last_seconds", figures.last_cycle_milliseconds / 1000, help="Length of the last turn"),
        Sample("fairlead_scheduling_cycles_total", figures.scheduling_cycles, type="counter"),
        Sample("fairlead_scheduling_seconds_total", figures.scheduling_milliseconds / 1000, type="counter"),
        Sample("fairlead_lost_races_total", figures.conflicts, help="Records written by others", type="counter"),
    ]
