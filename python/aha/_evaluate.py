"""Maps of any tool, measured."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any, Mapping, Sequence, Union

import numpy as np
from numpy.typing import NDArray

from . import _aha
from ._aha import InputError
from ._explain import Explainer
from ._inputs import classes_of, images_of, maps_of, names_of, options_of
from ._model import model_of


@dataclass(frozen=True)
class Value:
    """A metric of one method over all images."""

    mean: float
    low: float
    high: float  # bootstrap interval over images
    images: int  # measured
    per_image: NDArray[Any]  # (N), NaN where it was not measured

    def __str__(self) -> str:
        return f"{self.mean:.4f} [{self.low:.4f}, {self.high:.4f}]"


@dataclass(frozen=True)
class Difference:
    """a - b, paired by image."""

    mean: float
    low: float
    high: float
    p_value: float  # two-sided, by flipping signs; of this comparison alone
    win_rate: float  # share of images with a > b; ties count half
    images: int

    def __str__(self) -> str:
        wins = f"higher on {100 * self.win_rate:.0f} % of {self.images} images"
        return f"{self.mean:+.4f} [{self.low:+.4f}, {self.high:+.4f}], p = {self.p_value:.2g}, {wins}"


class Evaluation:
    """What aha.evaluate() found: r["ins-del"]["mine"].mean, r.difference("ins-del", "mine", "legrad")."""

    def __init__(
        self, found: _aha.Evaluation, methods: list[str], images: int, ci: float, asked: Sequence[str] = ()
    ) -> None:
        self._found, self.methods, self.images, self.ci = found, methods, images, ci
        directions = found.metrics()
        self.metrics: list[str] = [name for name, _ in directions]
        self.higher_is_better: dict[str, bool] = dict(directions)
        wanted = [name.split(":")[0] for name in (*asked, "ins-del", *self.metrics[-1:])]
        self._first = next((name for name in wanted if name in self.metrics), "")
        self._values = {
            metric: {method: Value(*found.value(i, k)) for k, method in enumerate(methods)}
            for i, metric in enumerate(self.metrics)
        }
        #: What to be careful about and what was left out.
        self.remarks: list[str] = found.remarks().splitlines()

    def _place(self, names: list[str], name: str, what: str) -> int:
        if name not in names:
            raise InputError(f"unknown {what} '{name}'; available: {', '.join(names)}")
        return names.index(name)

    def __getitem__(self, metric: str) -> dict[str, Value]:
        self._place(self.metrics, metric, "metric")
        return self._values[metric]

    def difference(self, metric: str, a: str, b: str) -> Difference:
        """Of methods a and b, paired by image."""
        return Difference(
            *self._found.difference(
                self._place(self.metrics, metric, "metric"),
                self._place(self.methods, a, "method"),
                self._place(self.methods, b, "method"),
            )
        )

    def best(self, metric: str) -> str:
        """The method with the best mean."""
        values = self[metric]
        sign = 1 if self.higher_is_better[metric] else -1
        measured = [method for method in self.methods if values[method].images > 0]
        if not measured:
            raise InputError(f"{metric}: was measured on no image")
        return max(measured, key=lambda method: sign * values[method].mean)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, for JSON."""
        return {
            metric: {
                method: {
                    "mean": v.mean,
                    "low": v.low,
                    "high": v.high,
                    "images": v.images,
                    "per_image": [None if np.isnan(x) else float(x) for x in v.per_image],
                }
                for method, v in values.items()
            }
            for metric, values in self._values.items()
        }

    def to_pandas(self, what: str = "means") -> Any:
        """A DataFrame of the means, of the "differences" between all pairs of methods, or of "images"."""
        import pandas

        pairs = [(metric, method) for metric in self.metrics for method in self.methods]
        if what == "means":
            rows: list[dict[str, Any]] = []
            for metric, method in pairs:
                v = self[metric][method]
                rows.append(
                    {
                        "metric": metric,
                        "method": method,
                        "mean": v.mean,
                        "low": v.low,
                        "high": v.high,
                        "images": v.images,
                        "higher_is_better": self.higher_is_better[metric],
                    }
                )
            return pandas.DataFrame(rows).set_index(["metric", "method"])
        if what == "images":
            return pandas.DataFrame({pair: self[pair[0]][pair[1]].per_image for pair in pairs}).rename_axis(
                columns=["metric", "method"], index="image"
            )
        if what == "differences":
            rows = [
                {"metric": metric, "a": a, "b": b, **vars(self.difference(metric, a, b))}
                for metric in self.metrics
                for i, a in enumerate(self.methods)
                for b in self.methods[i + 1 :]
            ]
            return pandas.DataFrame(rows)
        raise InputError(f"what: expected means, differences or images, found {what!r}")

    def _table(self) -> list[list[str]]:
        rows = [["", *self.methods]]
        for metric in self.metrics:
            best = self.best(metric) if any(v.images for v in self[metric].values()) else None
            row = [f"{metric} {'↑' if self.higher_is_better[metric] else '↓'}"]
            for method, value in self[metric].items():
                mark = " *" if method == best and len(self.methods) > 1 else ""
                row.append(f"{value}{mark}" if value.images else "not measured")
            rows.append(row)
        return rows

    def _differences(self) -> list[str]:
        """Of the first metric that was asked for: the best method against each other."""
        metric = self._first
        if len(self.methods) < 2 or not any(v.images for v in self._values.get(metric, {}).values()):
            return []
        best = self.best(metric)
        return [
            f"{metric}, {best} - {other}: {self.difference(metric, best, other)}"
            for other in self.methods
            if other != best
        ]

    def _title(self) -> str:
        images = f"{self.images} image{'' if self.images == 1 else 's'}"
        return f"{images}, mean [{100 * self.ci:g} % interval], * = best"

    def __repr__(self) -> str:
        table = self._table()
        widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
        lines = [self._title()]
        lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in table]
        return "\n".join(lines + self._differences() + self.remarks)

    def _repr_html_(self) -> str:
        def line(cells: list[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        table = self._table()
        below = "".join(f"<p>{html.escape(text)}</p>" for text in self._differences() + self.remarks)
        return (
            f"<p>{self._title()}</p><table>{line(table[0], 'th')}"
            f"{''.join(line(row, 'td') for row in table[1:])}</table>{below}"
        )


def evaluate(
    model: Any,
    x: Any,
    y: Any,
    maps: Mapping[str, Any],
    *,
    metrics: Union[str, Sequence[str], None] = None,
    ci: float = 0.95,
    references: Union[str, Sequence[str], None] = None,
    **options: Any,
) -> Evaluation:
    """How well maps explain a model: every metric of every image, means with intervals, paired differences.

    x: images as aha.Explainer takes them. y: the explained classes, one for each image (None = the predicted
    ones). maps: by name, arrays (N, h, w) or (N, 1, h, w) of any tool, higher = more important, resized where
    they have another size than the input, or an aha.Explainer. metrics: of aha.metrics(), by default those of
    the protocol. references: what replaces removed pixels (black, mean, blur, gray). Further options:
    protocol, steps, area, ties, score, as `aha eval` has them. ci: the level of the intervals.

    Images that one of the methods has no usable map for (constant, not finite) count for none; the remarks
    say so.
    """
    model = model_of(model)
    if not isinstance(maps, Mapping):
        raise InputError('maps: expected them by name, {"mine": array}, found ' + type(maps).__name__)
    if not maps:
        raise InputError("maps: expected those of one method or more, found none")
    images = images_of(x)
    classes, name = classes_of(y, len(images))
    if name is not None:
        raise InputError("y: expected one class index for each image or None, found a name")
    arrays = [
        maps_of(one(images, y) if isinstance(one, Explainer) else one, len(images), str(whose))
        for whose, one in maps.items()
    ]
    if len({array.shape for array in arrays}) > 1:
        side = (len(images), model.size, model.size)
        arrays = [
            array if array.shape == side else _aha.resized_maps(model._model, array) for array in arrays
        ]
    wanted = options_of(
        {"metrics": names_of(metrics), "references": names_of(references), "ci": ci, **options}
    )
    methods = [str(whose) for whose in maps]
    found = _aha.Evaluation(model._model, images, classes, methods, arrays, wanted)
    asked = metrics.split(",") if isinstance(metrics, str) else metrics or ()
    return Evaluation(found, methods, len(images), ci, asked)
