"""Maps as pictures that a notebook shows by itself."""

from __future__ import annotations

import os
import struct
import tempfile
import zlib
from typing import Any, Optional

import numpy as np
from numpy.typing import NDArray

from . import _aha
from ._aha import InputError
from ._inputs import array_of, images_of, options_of, shape_text

_GAP = 4  # pixels between pictures side by side
_MOST_COLUMNS = 6


def _png_of(pixels: NDArray[Any]) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = pixels.shape[:2]
    rows = np.zeros((height, 1 + 3 * width), np.uint8)  # filter 0 in front of each row
    rows[:, 1:] = pixels.reshape(height, 3 * width)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(rows.tobytes(), 6))
        + chunk(b"IEND", b"")
    )


class Picture:
    """Colors as a numpy array; shows itself in a notebook.

    pixels: (H, W, 3) uint8. np.asarray(picture) and PIL.Image.fromarray(picture.pixels) work, too.
    """

    def __init__(self, pixels: NDArray[Any], png: Optional[bytes] = None) -> None:
        self.pixels = pixels
        self._png = png

    @property
    def shape(self) -> tuple[int, ...]:
        return self.pixels.shape

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return self.pixels if dtype is None else self.pixels.astype(dtype)

    def _repr_png_(self) -> bytes:
        if self._png is None:
            self._png = _png_of(self.pixels)
        return self._png

    def save(self, path: "str | os.PathLike[str]") -> None:
        """A PNG file, or another format by its extension where Pillow is installed; written atomically."""
        path = os.fspath(path)
        ending = os.path.splitext(path)[1].lower()
        if ending != ".png":
            try:
                from PIL import Image
            except ImportError:
                raise InputError(
                    f"{path}: expected a name that ends in .png; other formats need Pillow"
                ) from None
            Image.init()
            if ending not in Image.EXTENSION:
                raise InputError(f"{path}: expected a name that ends like an image (.png, .jpg, ...)")
        try:
            handle, beside = tempfile.mkstemp(suffix=ending, dir=os.path.dirname(path) or ".")
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror}") from error
        try:
            with os.fdopen(handle, "wb") as file:
                if ending == ".png":
                    file.write(self._repr_png_())
                else:
                    Image.fromarray(self.pixels).save(file, format=Image.EXTENSION[ending])
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(beside, 0o666 & ~mask)
            os.replace(beside, path)
        except BaseException:
            os.unlink(beside)
            raise

    def __repr__(self) -> str:
        return f"<aha.Picture of {self.shape[1]} x {self.shape[0]} pixels>"


def side_by_side(pictures: list[Picture]) -> Picture:
    """In rows of six at most, on white."""
    if len(pictures) == 1:
        return pictures[0]
    columns = min(len(pictures), _MOST_COLUMNS)
    height = max(one.shape[0] for one in pictures)
    width = max(one.shape[1] for one in pictures)
    rows = -(-len(pictures) // columns)
    sheet = np.full((rows * (height + _GAP) - _GAP, columns * (width + _GAP) - _GAP, 3), 255, np.uint8)
    for i, one in enumerate(pictures):
        y, x = i // columns * (height + _GAP), i % columns * (width + _GAP)
        sheet[y : y + one.shape[0], x : x + one.shape[1]] = one.pixels
    return Picture(sheet)


def draw(
    image: Optional[_aha.Image], values: NDArray[Any], model: Optional[_aha.Model], options: dict[str, Any]
) -> Picture:
    if not np.isfinite(values).all():
        raise InputError("map: expected finite numbers, found others")
    return Picture(*_aha.overlay(image, values, model, options_of(options)))


def map_list(a: Any) -> NDArray[Any]:
    """(n, h, w) of a map or of several."""
    array = array_of(a, "map")
    if array is not None and array.ndim == 4 and array.shape[1] == 1:
        array = array[:, 0]
    if array is not None and array.ndim == 2:
        array = array[None]
    if array is None or array.ndim != 3 or array.size == 0 or array.dtype.kind not in "fiu":
        raise InputError(
            "map: expected an array of shape (height, width) or (N, height, width), found "
            f"{type(a).__name__ if array is None else shape_text(array)}"
        )
    return np.ascontiguousarray(array, np.float32)


def overlay(
    x: Any,
    a: Any,
    model: Any = None,
    *,
    opacity: Optional[float] = None,
    colors: Optional[str] = None,
    scale: Optional[str] = None,
    contours: bool = False,
) -> Picture:
    """Maps a in colors over the images x (what aha.Explainer takes); x = None: the maps alone.

    Over photos a map covers what the model sees of them; without a model it covers them whole. Several maps
    stand side by side. opacity of the highest value, colors, scale: as --heat-opacity, --heat-colors and
    --heat-scale of the command line; contours: lines around the top 10, 25 and 50 % of the pixels.
    """
    maps = map_list(a)
    images: list[Optional[_aha.Image]] = [None] * len(maps) if x is None else list(images_of(x))
    if len(images) != len(maps):
        raise InputError(f"map: expected one for each of {len(images)} images, found {len(maps)}")
    options = {"opacity": opacity, "colors": colors, "scale": scale, "contours": contours or None}
    seen_by = None if model is None else model._model
    return side_by_side([draw(image, one, seen_by, options) for image, one in zip(images, maps)])
