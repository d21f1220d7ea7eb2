"""Training an explainer for a model."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from typing import Any, Callable, Optional

from . import _aha
from ._aha import InputError
from ._explain import Explainer
from ._inputs import options_of
from ._model import Model, model_of


@dataclass(frozen=True)
class Progress:
    """What a callback is told, ten times a second at most."""

    what: str  # what is being done: "train", ...
    note: str  # what was found last
    done: int
    total: int  # 0 = not known


@dataclass(frozen=True)
class Trained:
    """What aha.train() leaves; explainer() is ready to use."""

    out: str  # the folder: what explainer= of aha.Explainer takes
    steps: int
    images: int
    unreadable: int
    insertion: float  # on held-out images
    deletion: float
    seconds: float
    model: Model

    def explainer(self, **options: Any) -> Explainer:
        return Explainer("aha", self.model, explainer=self.out, **options)


def _write_list(folder: str, files: Any) -> str:
    path = os.path.join(folder, "images.csv")
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as out:
        for one in files:
            if not isinstance(one, (str, os.PathLike)) or "\n" in os.fspath(one):
                raise InputError(f"data: expected files, found {one!r} among them")
            out.write(os.path.abspath(os.fspath(one)) + ",0\n")  # its label, which nobody asks for
    return "list:" + path


def train(
    model: Any,
    data: Any,
    *,
    out: "str | os.PathLike[str]",
    callback: Optional[Callable[[Progress], Any]] = None,
    **options: Any,
) -> Trained:
    """Trains an explainer for a model that aha.load() made from a name or a file, into the folder `out`.

    data: what --data of `aha train` takes ("folder:DIR", "cifar10:train", "list:FILE.csv", "imagenet:DIR"), a
    folder with one subfolder per class, or a list of files. callback(progress) is called while it runs; False
    ends the training, which then raises aha.Canceled. Further options are those of `aha train` (`aha help
    train`): epochs=, limit=, lr=, search=False, prior="chefer", resume=True, ... Seed, threads and batch size
    are the session's.
    """
    model = model_of(model)

    def tell(what: str, note: str, done: int, total: int) -> Any:
        assert callback is not None
        return callback(Progress(what, note, done, total))

    with tempfile.TemporaryDirectory(prefix="aha-") as folder:
        if isinstance(data, (list, tuple)):
            if not data:
                raise InputError("data: expected one file or more, found none")
            data = _write_list(folder, data)
        elif isinstance(data, (str, os.PathLike)):
            data = os.fspath(data)
            if os.path.isdir(data):
                data = "folder:" + data
        else:
            raise InputError(
                "data: expected a data set like folder:DIR, a folder or a list of files, found "
                f"{type(data).__name__}"
            )
        report = _aha.train(
            model._model, os.fsencode(data), os.fsencode(out), options_of(options), tell if callback else None
        )
    return Trained(out=os.fspath(out), model=model, **report)
