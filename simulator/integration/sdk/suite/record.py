"""Records what each call answered, and compares it with what was expected."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from kubernetes.client import ApiException

T = TypeVar("T")


@dataclass(frozen=True)
class Row:
    """One call of the table."""

    call: str
    expected: str
    result: str
    seconds: float
    raised: bool

    @property
    def unexpected(self) -> bool:
        """Report whether the call raised what it should not have raised."""
        return self.raised and self.result != self.expected


@dataclass
class Table:
    """The calls of a run, in order, and figures that a page shows without comparing them."""

    rows: list[Row] = field(default_factory=list)
    figures: dict[str, str] = field(default_factory=dict)

    def call(self, what: str, expected: str, do: Callable[[], T], says: Callable[[T], str] = str) -> T | None:
        """Run one call. It holds if what is said of its answer, or of its exception, is what was expected."""
        began = time.monotonic()
        answer, raised = None, False
        try:
            answer = do()
            result = says(answer)
        except Exception as error:  # noqa: BLE001 - the table shows it
            result, raised = describe(error), True
        self.rows.append(Row(what, expected, result, time.monotonic() - began, raised))
        return answer

    def as_dict(self) -> dict[str, Any]:
        """Return the table as JSON has it."""
        return {
            "rows": [asdict(row) | {"unexpected": row.unexpected} for row in self.rows],
            "figures": self.figures,
        }


def describe(error: BaseException) -> str:
    """Return an exception's class, and the answer of the API server or the message at the root of it."""
    root = error
    while root.__cause__ is not None:
        root = root.__cause__
    if isinstance(root, ApiException):
        return f"{type(error).__name__}: {root.status} {root.reason}"
    message = str(root).splitlines()
    return f"{type(error).__name__}: {message[0] if message else ''}".rstrip(": ")
