"""Exported torchvision networks with random weights: logits and input gradients of onnx:FILE beside torch's own.

    onnx_parity.py MODELS_PROBE [ARCHITECTURE ...]

Exit code 77 where torch, torchvision or onnx is missing.
"""

import os
import subprocess
import sys
import tempfile
import warnings

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
try:
    import numpy as np
    import onnx  # noqa: F401  torch.onnx.export needs it for some graphs
    import torch
    import torchvision.models as models
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

warnings.filterwarnings("ignore")

# architecture, side of the images, opset, batch axis free or fixed to one
CASES = [
    ("alexnet", 224, 11, True),
    ("densenet121", 64, 12, True),
    ("efficientnet_b0", 64, 13, True),
    ("efficientnet_v2_s", 64, 16, False),
    ("convnext_tiny", 64, 14, True),
    ("googlenet", 96, 11, True),
    ("inception_v3", 139, 12, True),
    ("maxvit_t", 224, 16, False),
    ("mnasnet0_5", 64, 11, True),
    ("mobilenet_v2", 64, 11, False),
    ("mobilenet_v3_small", 64, 13, True),
    ("regnet_x_400mf", 64, 15, True),
    ("regnet_y_400mf", 64, 13, False),
    ("resnet18", 64, 11, True),
    ("resnet50", 64, 16, False),
    ("resnext50_32x4d", 64, 13, True),
    ("shufflenet_v2_x0_5", 64, 12, True),
    ("squeezenet1_1", 64, 11, True),
    ("swin_t", 64, 16, True),
    ("swin_v2_t", 64, 16, False),
    ("vgg11_bn", 224, 13, True),
    ("vit_b_32", 64, 14, False),
    ("wide_resnet50_2", 64, 13, True),
]


# Folding BatchNorm into the convolutions moves ReLUs of these that are within rounding of zero, and so 3e-3 of their
# gradient in float32, in torch as well as here: they are exported as they are.
UNFOLDED = ("vgg11_bn", "resnet50", "resnext50_32x4d", "wide_resnet50_2")


def network(name, side):
    torch.manual_seed(7)
    options = {"weights": None, "num_classes": 10}
    if name in ("googlenet", "inception_v3"):
        options.update(init_weights=False, aux_logits=True)
    if name.startswith("vit_"):
        options["image_size"] = side
    made = getattr(models, name)(**options)
    with torch.no_grad():
        for parameter in made.parameters():  # vit's head starts at zero
            if parameter.dim() > 1 and float(parameter.abs().max()) == 0:
                parameter.normal_(std=0.1)
        if name.startswith("squeezenet"):  # its scores pass a ReLU: none may be dead
            made.classifier[1].bias.fill_(1)
    return made.eval()


def relative(found, expected):
    return float(np.linalg.norm(found - expected) / max(np.linalg.norm(expected), 1e-12))


def main():
    probe, wanted = sys.argv[1], sys.argv[2:]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        for name, side, opset, free in CASES:
            if wanted and name not in wanted:
                continue
            net = network(name, side)
            x = torch.rand(2, 3, side, side)
            try:
                torch.onnx.export(net, x[:1], path("m.onnx"), opset_version=opset, input_names=["x"], output_names=["y"],
                                  dynamic_axes={"x": {0: "n"}, "y": {0: "n"}} if free else None,
                                  training=torch.onnx.TrainingMode.PRESERVE if name in UNFOLDED else torch.onnx.TrainingMode.EVAL)
            except Exception as error:  # this torch cannot export it: nothing to compare with
                print(f"{name:22} not exported by torch {torch.__version__}: {str(error).splitlines()[0][:90]}")
                continue
            y = x.clone().requires_grad_()
            logits = net(y)
            logits[:, 7].sum().backward()
            np.save(path("x.npy"), x.numpy())
            run = subprocess.run([probe, "onnx:" + path("m.onnx"), path("x.npy"), path("l.npy"), path("g.npy")],
                                 capture_output=True, text=True)
            if run.returncode != 0:
                failures += 1
                print(f"{name:22} FAILED: {run.stderr.strip()[:300]}")
                continue
            logit_error = relative(np.load(path("l.npy")), logits.detach().numpy())
            gradient_error = relative(np.load(path("g.npy")), y.grad.numpy())
            good = logit_error <= 1e-4 and gradient_error <= 1e-3 and float(y.grad.norm()) > 0
            failures += not good
            print(f"{name:22} opset {opset} logits {logit_error:.1e} gradient {gradient_error:.1e}{'' if good else '  FAILED'}", flush=True)
    sys.exit(1 if failures else 0)


main()
