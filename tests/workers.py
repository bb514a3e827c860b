"""A pytest plugin of `make test` and `make test-kubernetes`: which process runs which tests, also after one has died.

xdist's own schedulers keep the tests that are done. They count them after every test, which took half a minute for ten
thousand tests; and after a process died they hand them out again and wait for their ends, which never come. This one
forgets a test when it is done, and does not run the test again in which a process died.
"""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    return Scheduling(config, log)


class Scheduling(LoadScopeScheduling):
    """Together on one process: tests of one `xdist_group`, and the others of one file, which share its servers."""

    def _split_scope(self, nodeid: str) -> str:
        test, _, group = nodeid.rpartition("@")
        # A parameter may contain the sign too.
        if test and "]" not in group:
            return group
        return nodeid.partition("::")[0]

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        self._forget(self.assigned_work[node], self.registered_collections[node][item_index])
        self._reschedule(node)

    def remove_node(self, node: WorkerController) -> str | None:
        """Give what the process has not done to the others; the first of it is what it died in, if it died."""
        left = self.assigned_work.pop(node)
        died_in = next((nodeid for unit in left.values() for nodeid in unit), None)
        if died_in is not None:
            self._forget(left, died_in)
            self.workqueue.update(left)
            for other in self.assigned_work:
                self._reschedule(other)
        return died_in

    def _forget(self, work: dict[str, dict[str, bool]], nodeid: str) -> None:
        scope = self._split_scope(nodeid)
        del work[scope][nodeid]
        if not work[scope]:
            del work[scope]
