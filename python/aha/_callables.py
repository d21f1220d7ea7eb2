"""Somebody's function as a classifier: numpy pixels to numpy logits, and the gradient where there is one.

A torch.nn.Module is called with tensors and differentiated by autograd. torch is never imported here for
those who do not use it.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any, Callable, Optional

import numpy as np
from numpy.typing import NDArray

from ._aha import InputError
from ._inputs import array_of, shape_text

Forward = Callable[[NDArray[Any]], Any]
Gradient = Callable[[NDArray[Any], NDArray[Any]], Any]


def _rgb(values: Any, name: str, default: float) -> NDArray[Any]:
    if values is None:
        return np.full((1, 3, 1, 1), default, np.float32)
    rgb = np.asarray(values, np.float32)
    if rgb.shape != (3,) or not np.isfinite(rgb).all() or (name == "std" and (rgb <= 0).any()):
        raise InputError(
            f"{name}: expected three {'positive ' if name == 'std' else ''}numbers for red, green and "
            f"blue, found {values!r}"
        )
    return rgb.reshape(1, 3, 1, 1)


def _floats(answer: Any, what: str) -> NDArray[Any]:
    if hasattr(answer, "detach"):  # torch, wherever it lies
        answer = answer.detach().cpu()
    array = array_of(answer, what)
    if array is None and isinstance(answer, (list, tuple)):
        array = np.asarray(answer)
    if array is None or array.dtype.kind not in "fiu":
        raise InputError(
            f"{what}: expected an array of numbers, found "
            f"{type(answer).__name__ if array is None else shape_text(array)}"
        )
    return np.ascontiguousarray(array, np.float32)


def is_torch_module(function: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(function, torch.nn.Module)


def _torch_functions(module: Any) -> tuple[Forward, Gradient]:
    import torch

    if module.training:
        warnings.warn(
            "aha.load: the module is in training mode, its answers may be random; call .eval() first",
            stacklevel=4,
        )

    def device() -> Any:
        for tensor in module.parameters():
            return tensor.device
        return "cpu"

    def logits_of(x: Any) -> Any:
        answer = module(x)
        return getattr(answer, "logits", answer)

    def forward(x: NDArray[Any]) -> Any:
        with torch.no_grad():
            return logits_of(torch.from_numpy(x).to(device()))

    # The thread is the library's, which computes without gradients itself.
    def gradient(x: NDArray[Any], weights: NDArray[Any]) -> Any:
        with torch.inference_mode(False), torch.enable_grad():
            pixels = torch.from_numpy(x).to(device()).requires_grad_()
            sum_of_logits = (logits_of(pixels) * torch.from_numpy(weights).to(device())).sum()
            return torch.autograd.grad(sum_of_logits, pixels)[0]

    return forward, gradient


def functions_of(
    function: Any, gradient: Optional[Gradient], mean: Any, std: Any
) -> tuple[Forward, Optional[Gradient]]:
    """The two functions the library calls, on [0, 1] pixels; (x - mean) / std is what `function` gets."""
    middle, spread = _rgb(mean, "mean", 0.0), _rgb(std, "std", 1.0)
    normal = mean is None and std is None
    if is_torch_module(function):
        forward, own_gradient = _torch_functions(function)
        gradient = gradient or own_gradient
    else:
        forward = function

    def inputs(pixels: NDArray[Any]) -> Any:
        return pixels if normal else (pixels - middle) / spread

    def logits(pixels: NDArray[Any]) -> NDArray[Any]:
        return _floats(forward(inputs(pixels)), "logits of the callable")

    def pixel_gradient(pixels: NDArray[Any], weights: NDArray[Any]) -> Any:
        assert gradient is not None
        return _floats(gradient(inputs(pixels), weights), "gradient of the callable") / spread

    return logits, None if gradient is None else pixel_gradient


def count_classes(forward: Forward, size: int) -> int:
    """By asking for a gray image."""
    logits = forward(np.full((1, 3, size, size), 0.5, np.float32))
    if logits.ndim != 2 or logits.shape[0] != 1:
        raise InputError(
            "logits of the callable: expected shape (1, classes) for one image, found "
            f"({', '.join(map(str, logits.shape))})"
        )
    return int(logits.shape[1])
