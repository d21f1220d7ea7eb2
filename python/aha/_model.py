"""Sessions and models."""

from __future__ import annotations

import atexit
import os
import weakref
from typing import Any, Optional

import numpy as np
from numpy.typing import NDArray

from . import _aha
from ._aha import InputError
from ._callables import Gradient, count_classes, functions_of
from ._inputs import images_of, options_of

_open_sessions: "weakref.WeakSet[Session]" = weakref.WeakSet()


class Session:
    """Threads, precision and seed of what is computed; aha.load() has one for whoever needs no other.

    threads: 0 = all cores; precision: "f32" or "bf16" (fast where the CPU multiplies bf16); seed of
    everything random; batch_size: images computed together, 0 = each call's own choice; device: "cpu",
    "cuda", "cuda:1"; quiet: no remarks on stderr; max_megapixels: larger photos are refused.

    Calls of one session run one after another; sessions take turns. A call can be ended by Ctrl-C, or by
    cancel() from another thread. A child of fork() needs a session (and models) of its own.
    """

    def __init__(
        self,
        *,
        threads: int = 0,
        precision: str = "f32",
        seed: int = 0,
        batch_size: int = 0,
        device: str = "cpu",
        quiet: bool = False,
        max_megapixels: float = 100,
    ) -> None:
        self._session = _aha.Session(
            options_of(
                {
                    "threads": threads,
                    "precision": precision,
                    "seed": seed,
                    "batch_size": batch_size,
                    "device": device,
                    "quiet": quiet,
                    "max_megapixels": max_megapixels,
                }
            )
        )
        _open_sessions.add(self)

    def load(
        self,
        spec: Any,
        *,
        classes: Optional[int] = None,
        size: Optional[int] = None,
        gradient: Optional[Gradient] = None,
        mean: Any = None,
        std: Any = None,
        name: Optional[str] = None,
    ) -> "Model":
        """See aha.load()."""
        if isinstance(spec, (str, os.PathLike)):
            for key, value in (("classes", classes), ("gradient", gradient), ("name", name)):
                if value is not None:
                    raise InputError(f"{key}: expected with a callable alone, found with the model {spec}")
            made = _aha.Model(
                self._session, os.fsencode(spec), options_of({"input_size": size, "mean": mean, "std": std})
            )
            return Model(made, self)
        if not callable(spec):
            raise InputError(
                "model: expected a bundled model, a model directory, ARCH:FILE, onnx:FILE.onnx, "
                f"script:FILE.pt or a callable, found {type(spec).__name__}"
            )
        forward, pixel_gradient = functions_of(spec, gradient, mean, std)
        side = 224 if size is None else int(size)
        if not 1 <= side <= 4096:
            raise InputError(f"size: expected 1..4096 pixels, found {side}")
        count = count_classes(forward, side) if classes is None else int(classes)
        called = name or getattr(spec, "__name__", type(spec).__name__)
        return Model(_aha.Model(self._session, called, count, side, forward, pixel_gradient), self)

    def cancel(self) -> None:
        """Ends the call that runs now, from any thread; it raises aha.Canceled."""
        self._session.cancel()


@atexit.register
def _end_calls() -> None:  # of threads that nobody waits for
    for session in list(_open_sessions):
        session.cancel()
    _aha.end_with_the_interpreter()


_default: Optional[Session] = None


def default_session() -> Session:
    global _default
    if _default is None:
        _default = Session()
    return _default


def _forget_default() -> None:
    global _default
    _default = None


os.register_at_fork(after_in_child=_forget_default)


def load(
    spec: Any,
    *,
    classes: Optional[int] = None,
    size: Optional[int] = None,
    gradient: Optional[Gradient] = None,
    mean: Any = None,
    std: Any = None,
    name: Optional[str] = None,
    session: Optional[Session] = None,
) -> "Model":
    """A classifier to explain.

    spec: what --target of the command line takes (a bundled model, a model directory, ARCH:FILE of weights,
    onnx:FILE, script:FILE), a torch.nn.Module, or any function of pixels (n, 3, size, size) float32 that
    returns logits (n, classes). mean, std: (x - mean) / std is what the network gets; files know theirs,
    functions and modules get pixels in [0, 1] unless it is said.

    Of functions: size is the side of the input (224 unless it is said), classes is found by asking once.
    gradient(x, weights) -> gradient by x of (logits * weights).sum(), of x's shape: without it only methods
    that need no gradient fit. Modules of torch have theirs from autograd.
    """
    return (session or default_session()).load(
        spec, classes=classes, size=size, gradient=gradient, mean=mean, std=std, name=name
    )


class Model:
    """A classifier; made by aha.load() or Session.load()."""

    def __init__(self, model: _aha.Model, session: Session) -> None:
        self._model, self.session = model, session
        self._names: Optional[list[str]] = None

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def architecture(self) -> str:
        return self._model.architecture

    @property
    def classes(self) -> int:
        """How many."""
        return self._model.classes

    @property
    def size(self) -> int:
        """Side of the input in pixels."""
        return self._model.size

    @property
    def class_names(self) -> list[str]:
        """Empty texts where they are not known."""
        if self._names is None:
            self._names = self._model.class_names()
        return self._names

    @property
    def methods(self) -> list[str]:
        """Those of aha.methods() that fit it."""
        return self._model.methods().splitlines()

    def logits(self, x: Any) -> NDArray[Any]:
        """(N, classes) float32 of what aha.Explainer takes."""
        return _aha.classify(self._model, images_of(x))[1]

    def pixels(self, x: Any) -> NDArray[Any]:
        """(N, 3, size, size) float32 in [0, 1]: what the classifier sees of photos, before it normalizes."""
        return _aha.classify(self._model, images_of(x))[0]

    __call__ = logits

    def __repr__(self) -> str:
        what = "" if self.architecture == self.name else f" ({self.architecture})"
        return f"<aha.Model {self.name}{what}: {self.classes} classes, {self.size} x {self.size} pixels>"


def model_of(model: Any) -> Model:
    return model if isinstance(model, Model) else load(model)
