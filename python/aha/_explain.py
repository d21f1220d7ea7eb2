"""Methods bound to models: images in, maps out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Optional

import numpy as np
from numpy.typing import NDArray

from . import _aha
from ._aha import InputError
from ._inputs import array_of, classes_of, images_of, method_spec, options_of
from ._model import Model, load, model_of
from ._picture import Picture, draw, map_list, side_by_side
from ._records import record_of


class Maps(np.ndarray):
    """Maps (N, H, W) float32: an array that a notebook shows; what is computed from it is a plain one."""

    def __array_wrap__(self, array: NDArray[Any], context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if array.ndim == 0 else array.view(np.ndarray)

    def __reduce__(self) -> Any:  # whoever reads it back needs no aha
        return self.view(np.ndarray).__reduce__()

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))

    def _repr_png_(self) -> Optional[bytes]:
        if self.ndim not in (2, 3) or self.size == 0 or self.dtype.kind != "f" or not np.isfinite(self).all():
            return None
        return side_by_side([draw(None, one, None, {}) for one in map_list(self)])._repr_png_()


@dataclass
class Explanation:
    """One map with what it took and how good it is (NaN where no score was asked for)."""

    map: Maps  # (H, W), higher = more important
    class_index: int
    class_name: str
    probability: float  # of the class
    deletion: float  # lower = better
    insertion: float  # higher = better
    random_deletion: float  # of a random map: the floor
    random_insertion: float
    steps: int  # of refinement
    loss: float  # of the last step; NaN where there was none
    forwards: float  # passes of the model
    backwards: float
    seconds: float  # of the map alone
    _image: _aha.Image = field(repr=False)
    _model: _aha.Model = field(repr=False)

    def overlay(self, **options: Any) -> Picture:
        """As aha.overlay()."""
        return draw(self._image, np.ascontiguousarray(self.map), self._model, options)

    def _repr_png_(self) -> bytes:
        return self.overlay()._repr_png_()


class Explainer:
    """A method for a model: aha.Explainer("legrad", m)(x) -> maps.

    method: a name of aha.methods(), or NAME:key=value as on the command line; its options may be keywords
    (aha.Explainer("rise", m, masks=400)). model: what aha.load() returns or takes. refine and budget
    ("200ms") belong to the method aha, explainer names one that aha.train() made, encoder the weights of its
    own encoder. Refused at once where the method does not fit the model.
    """

    def __init__(
        self,
        method: str,
        model: Any,
        *,
        refine: int = 0,
        budget: Optional[str] = None,
        explainer: Any = None,
        encoder: Any = None,
        **options: Any,
    ) -> None:
        self.model = model_of(model)
        self.method = method_spec(method, options)
        self._options: dict[str, Any] = {
            "method": self.method,
            "budget": budget,
            "refine": refine or None,
            "explainer": explainer,
            "encoder": encoder,
        }
        self.model._model.check(options_of(self._options))
        record = record_of(self.method)
        self.__doc__ = (
            f"{record}\n\nCall it with images: (N, 3, H, W) float32 in [0, 1], files or PIL images."
        )

    def _run(
        self, x: Any, target: Any, score: bool
    ) -> tuple[list[_aha.Image], NDArray[Any], list[dict[str, Any]]]:
        images = images_of(x)
        classes, name = classes_of(target, len(images))
        options = options_of({**self._options, "class": name, "score": score})
        maps, facts = _aha.explain(self.model._model, images, classes, options)
        return images, maps, facts

    def __call__(self, x: Any, target: Any = None) -> Maps:
        """Maps (N, H, W) float32 of images x, higher = more important.

        x: (N, 3, H, W) floats in [0, 1] of the model's size, uint8 photos (N, H, W, 3) of any size, a file, a
        PIL image, or a list of these; torch tensors and others with DLPack, too. target: the class explained,
        an index, a name or one index for each image; None = the predicted ones.
        """
        return self._run(x, target, score=False)[1].view(Maps)

    def explain(self, x: Any, target: Any = None, *, score: bool = True) -> list[Explanation]:
        """The same with class, probability, scores, passes and time, one for each image."""
        images, maps, facts = self._run(x, target, score)
        return [
            Explanation(map=one.view(Maps), _image=image, _model=self.model._model, **of_one)
            for one, image, of_one in zip(maps, images, facts)
        ]

    def attribute(self, inputs: Any, target: Any = None, **ignored: Any) -> Any:
        """As Captum: (N, 1, H, W) of the kind that `inputs` is (a torch tensor gives a torch tensor)."""
        if ignored:
            raise InputError(
                f"attribute: expected inputs and target, found {', '.join(ignored)} too; options of "
                "the method are those of aha.Explainer()"
            )
        maps = self(inputs, target)[:, None].view(np.ndarray)
        if type(inputs).__module__.split(".")[0] == "torch":
            import torch

            return torch.from_numpy(maps).to(inputs.device)
        return maps

    def __repr__(self) -> str:
        return f"<aha.Explainer {self.method} of {self.model.name}>"


def explain_func(
    method: str, model: Any = None, *, mean: Any = None, std: Any = None, **options: Any
) -> Callable[..., NDArray[Any]]:
    """An explain_func for Quantus: f(model, inputs, targets, **kwargs) -> (N, 1, H, W).

    Without a model here, the one that Quantus hands over is explained, also where it has changed it (tests
    that randomize weights). mean, std: inputs are (x - mean) / std, which is how such scripts keep them.
    options are those of aha.Explainer().
    """
    fixed = None if model is None else model_of(model)

    def explain(model: Any = None, inputs: Any = None, targets: Any = None, **kwargs: Any) -> NDArray[Any]:
        x = array_of(inputs, "inputs")
        if x is None or x.ndim != 4:
            raise InputError("inputs: expected an array of shape (N, 3, H, W)")
        if mean is not None or std is not None:
            spread = np.reshape(np.asarray(1.0 if std is None else std, np.float32), (1, -1, 1, 1))
            middle = np.reshape(np.asarray(0.0 if mean is None else mean, np.float32), (1, -1, 1, 1))
            x = np.clip(x * spread + middle, 0, 1)
        asked = fixed
        if asked is None:
            asked = load(model, size=x.shape[-1], mean=mean, std=std)
        return Explainer(method, asked, **options).attribute(np.asarray(x), targets)

    return explain
