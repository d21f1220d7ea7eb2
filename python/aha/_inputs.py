"""What callers hand in, as the library takes it: images, classes, maps, options."""

from __future__ import annotations

import os
import sys
from typing import Any, Optional, Sequence

import numpy as np
from numpy.typing import NDArray

from . import _aha
from ._aha import InputError


def array_of(x: Any, what: str) -> Optional[NDArray[Any]]:
    """A numpy array of x without a copy where that is possible; None = x is no array."""
    if isinstance(x, np.ndarray):
        return x
    if hasattr(x, "__dlpack__"):
        if hasattr(x, "detach"):  # torch: a tensor with a gradient is not handed out
            x = x.detach()
        try:
            return np.from_dlpack(x)
        except Exception as error:
            raise InputError(
                f"{what}: expected an array on the CPU, found {type(x).__name__} on "
                f"{getattr(x, 'device', 'another device')} ({error})"
            ) from error
    if hasattr(x, "__array__") and not is_pil(x):
        return np.asarray(x)
    return None


def is_pil(x: Any) -> bool:
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(x, module.Image)


def shape_text(array: NDArray[Any]) -> str:
    return f"{array.dtype} of shape ({', '.join(map(str, array.shape))})"


def _from_pil(picture: Any) -> _aha.Image:
    from PIL import ImageOps

    return _aha.Image.from_bytes(np.asarray(ImageOps.exif_transpose(picture).convert("RGB")))


def _one_from_array(array: NDArray[Any], what: str) -> _aha.Image:
    if array.ndim == 3 and array.dtype == np.uint8:
        if array.shape[2] == 3:
            return _aha.Image.from_bytes(array)
        if array.shape[0] == 3:
            return _aha.Image.from_bytes(array.transpose(1, 2, 0))
    if array.ndim == 3 and array.dtype.kind == "f" and array.shape[0] == 3:
        return _aha.Image.from_floats(array.astype(np.float32, copy=False), what)
    hint = ""
    if array.dtype.kind == "f" and array.ndim == 3 and array.shape[2] == 3:
        hint = "; with channels last: x.transpose(0, 3, 1, 2)"
    raise InputError(
        f"{what}expected float pixels of shape (3, H, W) in [0, 1] or uint8 photos of shape "
        f"(H, W, 3), found {shape_text(array)}{hint}"
    )


def images_of(x: Any) -> list[_aha.Image]:
    """Images from an array or tensor of them, a file, a PIL image, or a list of such."""
    if isinstance(x, _aha.Image):
        return [x]
    if isinstance(x, (str, os.PathLike)):
        return [_aha.Image.read(os.fsencode(x))]
    if is_pil(x):
        return [_from_pil(x)]
    array = array_of(x, "x")
    if array is not None:
        if array.ndim == 3:
            array = array[None]
        if array.ndim != 4:
            raise InputError(
                "x: expected float pixels of shape (N, 3, H, W) in [0, 1] or uint8 photos of shape "
                f"(N, H, W, 3), found {shape_text(array)}"
            )
        x = list(array)
    if not isinstance(x, (list, tuple)):
        raise InputError(
            "x: expected an array or tensor, a file, a PIL image or a list of these, found "
            f"{type(x).__name__}"
        )
    if len(x) == 0:
        raise InputError("images: expected one or more, found none")
    images = []
    for i, one in enumerate(x):
        if isinstance(one, (_aha.Image, str, os.PathLike)) or is_pil(one):
            image = images_of(one)[0]
        else:
            part = array_of(one, f"image {i}")
            if part is None:
                raise InputError(
                    f"image {i}: expected an array or tensor, a file or a PIL image, found "
                    f"{type(one).__name__}"
                )
            image = _one_from_array(part, f"image {i}: ")
        if not isinstance(one, (_aha.Image, str, os.PathLike)):
            image.rename(f"image {i}")
        images.append(image)
    return images


def classes_of(target: Any, n: int) -> tuple[Optional[NDArray[Any]], Optional[str]]:
    """(one class for each image or None, a class by its name or None); both None = the predicted classes."""
    if target is None:
        return None, None
    if isinstance(target, str):
        return None, target
    if isinstance(target, (list, tuple)):
        target = np.asarray(target)
    array = target if isinstance(target, (int, np.integer)) else array_of(target, "target")
    if array is not None and not isinstance(target, bool):
        array = np.asarray(array)
        if array.dtype.kind in "iu" and array.dtype != np.bool_:
            if array.ndim == 0:
                array = np.full(n, array)
            if array.ndim == 2 and array.shape[1] == 1:
                array = array[:, 0]
            if array.shape == (n,):
                return np.ascontiguousarray(array, np.int64), None
        found = shape_text(array)
    else:
        found = type(target).__name__
    raise InputError(f"target: expected a class name, a class index or {n} of them, found {found}")


def maps_of(maps: Any, n: int, name: str) -> NDArray[Any]:
    """(n, h, w) float32 from (n, h, w) or (n, 1, h, w)."""
    array = array_of(maps, f"maps of {name}")
    if array is None and isinstance(maps, (list, tuple)):
        try:
            array = np.stack([np.asarray(one, np.float32) for one in maps])
        except (TypeError, ValueError) as error:
            raise InputError(f"maps of {name}: expected arrays of one shape ({error})") from error
    if array is None:
        raise InputError(
            f"maps of {name}: expected an array or an aha.Explainer, found {type(maps).__name__}"
        )
    if array.ndim == 2 and n == 1:
        array = array[None]
    if array.ndim == 4 and array.shape[1] == 1:
        array = array[:, 0]
    hint = "; one number for each pixel: a.sum(1) or abs(a).max(1)" if array.ndim == 4 else ""
    if array.ndim != 3 or array.shape[0] != n or array.size == 0 or array.dtype.kind not in "fiu":
        raise InputError(
            f"maps of {name}: expected shape ({n}, height, width), found {shape_text(array)}{hint}"
        )
    return np.ascontiguousarray(array, np.float32)


def _text_of(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(_text_of(one) for one in value)
    return str(os.fspath(value) if isinstance(value, os.PathLike) else value)


def options_of(options: dict[str, Any]) -> list[tuple[str, bytes]]:
    """As the command line has them: batch_size = "batch-size", from_ = "from"; None = not given."""
    return [
        (key.rstrip("_").replace("_", "-"), os.fsencode(_text_of(value)))
        for key, value in options.items()
        if value is not None
    ]


def method_spec(method: str, options: dict[str, Any]) -> str:
    """("rise", {"masks": 100}) -> "rise:masks=100"."""
    if not isinstance(method, str):
        raise InputError(f"method: expected a name of aha.methods(), found {type(method).__name__}")
    return ":".join(
        [method]
        + [f"{key.rstrip('_')}={_text_of(value)}" for key, value in options.items() if value is not None]
    )


def names_of(value: "str | Sequence[str] | None") -> "str | list[str] | None":
    return value if value is None or isinstance(value, str) else list(value)
