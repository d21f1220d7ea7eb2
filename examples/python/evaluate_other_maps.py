"""How good are maps that another tool made? Here the other tool is twenty lines of numpy.

    export PYTHONPATH=build/release/python
    python3 examples/python/evaluate_other_maps.py cifar10-vit4 PHOTO PHOTO ...

Whatever gives one number for each pixel can stand in its place: Captum, Quantus, SHAP, your own code. It sees
the classifier as a function, model.logits.
"""

import sys

import aha  # before numpy: it sets what numpy's OpenBLAS reads when it is loaded
import numpy as np


def gray_patches(logits, x, classes, cells=8):
    """How much the class logit falls when a patch turns gray."""
    side = x.shape[2] // cells
    each = np.arange(len(x))
    before = logits(x)[each, classes]
    maps = np.zeros((len(x), cells, cells), np.float32)
    for row in range(cells):
        for column in range(cells):
            changed = x.copy()
            changed[:, :, row * side : (row + 1) * side, column * side : (column + 1) * side] = 0.5
            maps[:, row, column] = before - logits(changed)[each, classes]
    return maps  # of any size: evaluate() resizes


def edges(x):
    """Knows nothing of the classifier."""
    gray = x.mean(1)
    return np.abs(np.gradient(gray, axis=1)) + np.abs(np.gradient(gray, axis=2))


if len(sys.argv) < 3:
    sys.exit(__doc__)
model = aha.load(sys.argv[1])
x = model.pixels(sys.argv[2:])  # (N, 3, H, W) in [0, 1], as the classifier sees them
y = model.logits(x).argmax(1)

maps = {
    "gray patches": gray_patches(model.logits, x, y),
    "edges": edges(x),
    "gradient": aha.Explainer("gradient", model),
    "rise": aha.Explainer("rise", model, masks=100),
}
result = aha.evaluate(model, x, y, maps, metrics=["ins-del", "sparseness"], ci=0.9)
print(result)
print("best by ins-del:", result.best("ins-del"))
print("of each image:", np.round(result["ins-del"]["gray patches"].per_image, 3))
