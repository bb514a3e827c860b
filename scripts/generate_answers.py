"""Renders the reference page of answers: the JSON schemas of what `why`, `plan`, `what-if` and `estimate` print."""

import json

import msgspec

from fairlead.foresight.estimate import EstimateAnswer
from fairlead.foresight.plan import PlanAnswer
from fairlead.foresight.precedence import PrecedenceAnswer
from fairlead.foresight.replayed import ReplayAnswer
from fairlead.foresight.timeline import TimelineAnswer
from fairlead.foresight.what_if import WhatIfAnswer
from fairlead.foresight.why import WhyAnswer
from fairlead.simulator.report import HistoryAnswer

#: Heading and type of each answer.
ANSWERS: dict[str, type[msgspec.Struct]] = {
    "why": WhyAnswer,
    "plan": PlanAnswer,
    "what-if": WhatIfAnswer,
    "estimate": EstimateAnswer,
    "why --history": TimelineAnswer,
    "why --after": PrecedenceAnswer,
    "replay": ReplayAnswer,
    "what-if history": HistoryAnswer,
}


def render_page() -> str:
    lines = [
        "# Answers of the scheduler",
        "",
        "The JSON that `fairlead why --snapshot FILE -o json` and its neighbours print, and that the server's paths of "
        "the same names answer. Generated from the types. [Ask the scheduler](../foresight.md) explains them.",
        "",
        "Times are in seconds, as in a [snapshot](snapshot.md). A new member may be added in any version; members are "
        "not renamed or removed.",
        "",
    ]
    for name, answer in ANSWERS.items():
        lines += [f"## {name}", "", "```json", json.dumps(msgspec.json.schema(answer), indent=1), "```", ""]
    return "\n".join(lines).rstrip() + "\n"
