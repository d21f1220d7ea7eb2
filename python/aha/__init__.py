"""Which pixels drove an image classifier's decision.

    import aha

    m = aha.load("cifar10-vit4")              # or any callable: pixels -> logits
    e = aha.Explainer("aha", m)               # a method of aha.methods()
    a = e(["cat.png", "dog.png"])             # maps, (N, H, W) float32, higher = more important
    aha.overlay("cat.png", a[0], m).save("cat.overlay.png")
    r = aha.evaluate(m, x, y, {"aha": a, "mine": b}, metrics=["ins-del"])
    aha.train(m, "folder:photos", out="my-explainer")

Arrays are numpy's or anything with DLPack (torch, jax, cupy on the CPU). PyTorch is not needed; its modules
are taken as they are. What fails raises aha.Error or aha.InputError (a ValueError, too).
"""

# The library comes first: it sets what OpenBLAS reads when numpy loads it.
from ._aha import Canceled, Error, InputError, __version__
from ._evaluate import Difference, Evaluation, Value, evaluate
from ._explain import Explainer, Explanation, Maps, explain_func
from ._model import Model, Session, load
from ._picture import Picture, overlay
from ._records import MethodRecord, MetricRecord, methods, metrics
from ._train import Progress, Trained, train

__all__ = [
    "Canceled",
    "Difference",
    "Error",
    "Evaluation",
    "Explainer",
    "Explanation",
    "InputError",
    "Maps",
    "MethodRecord",
    "MetricRecord",
    "Model",
    "Picture",
    "Progress",
    "Session",
    "Trained",
    "Value",
    "__version__",
    "evaluate",
    "explain_func",
    "load",
    "methods",
    "metrics",
    "overlay",
    "train",
]
