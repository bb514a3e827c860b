"""All operations of NVIDIA's own client: its methods, and the arguments with which a test calls them."""

import inspect
import re
import typing
import warnings
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any, NamedTuple

with warnings.catch_warnings():
    # Its sources have escape sequences that Python warns of when it compiles them for the first time.
    warnings.simplefilter("ignore")
    from runai import api as runai_api
    from runai.api_client import ApiClient
    from runai.configuration import Configuration
    from runai.exceptions import ApiException

__all__ = [
    "NOTHING",
    "NO_NUMBER",
    "ApiClient",
    "ApiException",
    "ClientOperation",
    "Configuration",
    "SentRequest",
    "client_operations",
    "matches",
]

#: A record that does not exist, as a UUID and as a number.
NOTHING, NO_NUMBER = "99999999-9999-4999-8999-999999999999", 999
#: What stands in the path of a request for a variable.
_VARIABLE = f"(?:{NOTHING}|{NO_NUMBER}|autoRedirectSSO)"


class SentRequest(NamedTuple):
    method: str
    path: str


class ClientOperation(NamedTuple):
    """A method of one of the client's classes."""

    room: type[Any]
    name: str
    function: Callable[..., Any]

    def __str__(self) -> str:
        return f"{self.room.__name__}.{self.name}"

    def call(self, client: Any, values: Mapping[str, object]) -> Any:
        """Call it with a value for every mandatory argument, and with an empty body."""
        given: dict[str, Any] = {}
        for name, parameter in list(inspect.signature(self.function).parameters.items())[1:]:
            value = _argument(parameter.annotation)
            if parameter.default is inspect.Parameter.empty or value in ({}, [{}]) or name in values:
                given[name] = values.get(name, value)
        return self.function(self.room(client), **given)

    def request(self, values: Mapping[str, object]) -> SentRequest:
        """The request that a call would send."""
        recorder = _Recorder()
        self.call(recorder, values)
        return recorder.requests[0]


def matches(path: str, request: SentRequest) -> bool:
    """Whether a request of records that do not exist is one to that path of a description."""
    return _pattern(path).fullmatch(request.path) is not None


@cache
def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{[^}]+\}", _VARIABLE, path))


class _Recorder:
    def __init__(self) -> None:
        self.requests: list[SentRequest] = []

    def call_api(self, method: str, resource_path: str, **_: Any) -> None:
        self.requests.append(SentRequest(method, resource_path))


def _argument(annotation: Any) -> object:
    """A value of that type: nothing for an id, the first name of an enum, an empty body for a model."""
    inner = [each for each in typing.get_args(annotation) if each is not type(None)]
    if typing.get_origin(annotation) is list:
        return [_argument(inner[0])]
    if inner:
        return _argument(inner[0])
    if annotation is int:
        return NO_NUMBER
    if annotation is datetime:
        return "2023-11-14T22:00:00Z"
    if issubclass(annotation, Enum):
        return next(iter(annotation)).value
    return {} if annotation.__module__.startswith("runai.models") else NOTHING


def client_operations() -> Iterator[ClientOperation]:
    for room in vars(runai_api).values():
        if not inspect.isclass(room) or not room.__name__.endswith("Api"):
            continue
        for name, function in vars(room).items():
            if not name.startswith("_") and callable(function):
                # Methods that it calls deprecated are wrapped in a function that hides their arguments.
                inner = [cell.cell_contents for cell in function.__closure__ or ()]
                yield ClientOperation(room, name, next((each for each in inner if callable(each)), function))
