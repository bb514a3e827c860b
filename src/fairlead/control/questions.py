"""Runs long questions beside the loop: one at a time per caller, each answered once per revision of the state.

Only pure functions on frozen data run here, in a thread. Nothing is computed that nobody asked for.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

Answer = TypeVar("Answer")
#: Answers that are kept; each is a few kilobytes.
_KEPT = 256


class QuestionKey(NamedTuple):
    """What was asked, by a caller with these rights, about which state."""

    revision: int
    rights: Hashable
    question: Hashable


class Questions:
    def __init__(self) -> None:
        self._turns: dict[str, asyncio.Lock] = {}
        #: Questions of a caller that are not answered yet, the one under way included.
        self._open: Counter[str] = Counter()
        self._answers: OrderedDict[QuestionKey, Any] = OrderedDict()
        #: By caller and id.
        self._plans: OrderedDict[tuple[str, str], object] = OrderedDict()

    def count_open(self, caller: str) -> int:
        """How many questions of this caller are being answered or wait for that."""
        return self._open[caller]

    def known(self, key: QuestionKey, type: type[Answer]) -> Answer | None:
        """The answer that is kept, if it is of the type in which the question is answered."""
        answer = self._answers.get(key)
        return answer if isinstance(answer, type) else None

    async def ask(self, caller: str, key: QuestionKey, compute: Callable[[], Answer]) -> Answer:
        """The answer; further questions of the same caller wait for their turn."""

        def compute_once() -> Answer:
            known: Answer | None = self._answers.get(key)
            return compute() if known is None else known

        answer = await self.ask_uncached(caller, compute_once)
        self._answers[key] = answer
        while len(self._answers) > _KEPT:
            self._answers.popitem(last=False)
        return answer

    async def ask_uncached(self, caller: str, compute: Callable[[], Answer]) -> Answer:
        """The answer to a question that depends on the time and is not kept; further questions wait as well."""
        turn = self._turns.setdefault(caller, asyncio.Lock())
        self._open[caller] += 1
        try:
            async with turn:
                return await asyncio.to_thread(compute)
        finally:
            self._open[caller] -= 1
            if not self._open[caller]:
                del self._open[caller]
                del self._turns[caller]

    def remember_plan(self, caller: str, id: str, plan: object) -> None:
        """Keep a plan, so that a submission can be told how the present differs from it."""
        self._plans[caller, id] = plan
        self._plans.move_to_end((caller, id))
        while len(self._plans) > _KEPT:
            self._plans.popitem(last=False)

    def known_plan(self, caller: str, id: str, type: type[Answer]) -> Answer | None:
        plan = self._plans.get((caller, id))
        return plan if isinstance(plan, type) else None
