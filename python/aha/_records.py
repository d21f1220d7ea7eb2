"""What methods and metrics there are, from the library's records."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeVar

from . import _aha


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".") if text else ""


@dataclass(frozen=True)
class MethodRecord:
    """A method: print() shows what it computes, where it is from, what it needs and its options."""

    name: str
    summary: str
    paper: str
    needs: str  # of the model
    kind: str
    note: str
    reads_class: bool  # whether the map depends on the class
    options: tuple[dict[str, Any], ...]  # name, type, default, help

    def __str__(self) -> str:
        lines = [f"{self.name}: {_sentence(self.summary)}", _sentence(self.paper)]
        if self.needs:
            lines.append(f"Needs {self.needs}.")
        if not self.reads_class:
            lines.append("The map does not depend on the class.")
        lines.append(_sentence(self.note))
        lines += [f"  {one['name']}={one['default']}  {one['help']} ({one['type']})" for one in self.options]
        return "\n".join(line for line in lines if line)


@dataclass(frozen=True)
class MetricRecord:
    """A metric of aha.evaluate()."""

    name: str
    summary: str
    higher_is_better: bool
    parts: tuple[str, ...]  # of a difference

    def __str__(self) -> str:
        return f"{self.name}: {self.summary}; {'higher' if self.higher_is_better else 'lower'} is better"


Record = TypeVar("Record", MethodRecord, MetricRecord)


class Records(dict[str, Record]):
    """Records by name, in the library's order; the repr is a list of them."""

    def __repr__(self) -> str:
        return "\n".join(f"{name:<24} {record.summary}" for name, record in self.items())


def methods() -> Records[MethodRecord]:
    """All methods by name: print(aha.methods()["legrad"])."""
    found: Records[MethodRecord] = Records()
    for one in json.loads(_aha.records("methods")):
        found[one["name"]] = MethodRecord(
            one["name"],
            one["summary"],
            one["paper"],
            one["needs"],
            one["kind"],
            one["note"],
            one["reads_class"],
            tuple(one["options"]),
        )
    return found


def metrics() -> Records[MetricRecord]:
    """All metrics by name. Those that explain again or look at masks are for `aha eval`."""
    found: Records[MetricRecord] = Records()
    for one in json.loads(_aha.records("metrics")):
        found[one["name"]] = MetricRecord(
            one["name"], one["summary"], one["higher_is_better"], tuple(one["parts"])
        )
    return found


def record_of(method: str) -> str:
    """The text for a method as it was asked for."""
    name = method.removeprefix("inverted:").split(":")[0]
    record = methods().get(name)
    return str(record) if record else method
