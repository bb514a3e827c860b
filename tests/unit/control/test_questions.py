"""Questions of one caller are answered one at a time; those of others do not wait for them."""

import asyncio
import threading

import pytest

from fairlead.control.questions import QuestionKey, Questions


def key(question: str) -> QuestionKey:
    return QuestionKey(1, "rights", question)


def test_the_second_question_of_a_caller_waits_for_the_first() -> None:
    async def ask() -> None:
        questions, may_go_on, asked = Questions(), threading.Event(), []

        def slow() -> str:
            asked.append("slow")
            may_go_on.wait()
            return "slow"

        def quick() -> str:
            asked.append("quick")
            return "quick"

        first = asyncio.create_task(questions.ask("ann", key("a"), slow))
        await asyncio.sleep(0)
        second = asyncio.create_task(questions.ask("ann", key("b"), quick))
        await asyncio.sleep(0)
        assert questions.count_open("ann") == 2
        assert await questions.ask("bob", key("c"), lambda: "bob's") == "bob's"
        assert "quick" not in asked
        may_go_on.set()
        assert (await first, await second, asked) == ("slow", "quick", ["slow", "quick"])
        assert questions.count_open("ann") == questions.count_open("bob") == 0

    asyncio.run(ask())


def test_an_answer_is_kept_and_a_failure_is_not() -> None:
    async def ask() -> None:
        questions = Questions()

        def fail() -> str:
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            await questions.ask("ann", key("a"), fail)
        assert questions.count_open("ann") == 0
        assert await questions.ask("ann", key("a"), lambda: "first") == "first"
        assert await questions.ask("ann", key("a"), fail) == "first"

    asyncio.run(ask())
