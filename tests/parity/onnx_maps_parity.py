"""Maps of an exported vision transformer beside those of the same weights as a model directory.

    onnx_maps_parity.py AHA

A small transformer of torchvision's with random weights, patches of 32 pixels as ViT-B/32 has them, is exported to ONNX with a
free and with a fixed batch axis; its weights under canonical names are the model directory. What a method finds in the graph has
to be what the network shows by itself. Exit code 77 where torch, torchvision or onnx is missing.
"""

import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile
import warnings

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
try:
    import numpy as np
    import onnx  # noqa: F401  torch.onnx.export needs it for some graphs
    import torch
    import torchvision
    from torchvision.transforms.functional import to_pil_image
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

warnings.filterwarnings("ignore")

METHODS = ["chefer", "legrad", "rollout", "bi-att", "gradcam"]
SIDE, PATCH, WIDTH, DEPTH, HEADS, HIDDEN, CLASSES = 224, 32, 64, 4, 2, 96, 7
INPUT = {"size": SIDE, "resize": {"rule": "none"}, "crop": False, "filter": "bilinear", "mean": [0.5, 0.45, 0.4], "std": [0.25, 0.25, 0.25]}


def network():
    torch.manual_seed(5)
    made = torchvision.models.VisionTransformer(SIDE, PATCH, DEPTH, HEADS, WIDTH, HIDDEN, num_classes=CLASSES).eval()
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=1.5 / parameter[0].numel() ** 0.5)
            else:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return made


def canonical(state):
    """torchvision's names -> timm's."""
    table = {}
    for name, value in state.items():
        name = name.replace("encoder.layers.encoder_layer_", "blocks.").replace("conv_proj", "patch_embed.proj")
        for there, here in (("class_token", "cls_token"), ("encoder.pos_embedding", "pos_embed"), ("encoder.ln.", "norm."), ("heads.head.", "head."),
                            (".ln_1.", ".norm1."), (".ln_2.", ".norm2."), ("self_attention.in_proj_", "attn.qkv."), ("self_attention.out_proj", "attn.proj"),
                            ("mlp.0.", "mlp.fc1."), ("mlp.3.", "mlp.fc2.")):
            name = name.replace(there, here)
        table[name] = value.contiguous()
    return table


def write_model_directory(folder, state):
    os.makedirs(folder)
    header, data = {}, b""
    for name, value in sorted(canonical(state).items()):
        part = value.numpy().astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    content = struct.pack("<Q", len(text)) + text + data
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(content)
    config = {"image_size": SIDE, "patch": PATCH, "width": WIDTH, "depth": DEPTH, "heads": HEADS, "mlp_hidden": HIDDEN, "classes": CLASSES, "eps": 1e-6}
    card = {"kind": "classifier", "architecture": "vit", "network": config, "input": INPUT, "classes": [f"class {i}" for i in range(CLASSES)],
            "sha256": hashlib.sha256(content).hexdigest()}
    with open(os.path.join(folder, "model.json"), "w") as file:
        json.dump(card, file)


def main():
    aha = sys.argv[1]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        path = lambda *names: os.path.join(folder, *names)
        net = network()
        write_model_directory(path("vit"), net.state_dict())
        for name, axes in (("free", {"x": {0: "n"}, "y": {0: "n"}}), ("one", None)):
            torch.onnx.export(net, torch.rand(1, 3, SIDE, SIDE), path(name + ".onnx"), opset_version=14, input_names=["x"], output_names=["y"], dynamic_axes=axes)
            with open(path(name + ".preprocess.json"), "w") as file:
                json.dump({"input_size": [3, SIDE, SIDE], "resize": {"mode": "none"}, "crop": "none", "mean": INPUT["mean"], "std": INPUT["std"]}, file)
        os.makedirs(path("images"))
        for i in range(3):
            coarse = torch.rand(1, 3, 9, 9)
            to_pil_image(torch.nn.functional.interpolate(coarse, (SIDE, SIDE), mode="bicubic").clamp(0, 1)[0]).save(path("images", f"{i}.png"))

        def maps(target, method, out):
            run = subprocess.run([aha, "explain", "--quiet", "--target", target, "--method", method, "--class", "3", "--no-score", "--no-sheet",
                                  "--out", path(out), path("images")], capture_output=True, text=True)
            if run.returncode != 0:
                raise RuntimeError(run.stderr.strip())
            return np.stack([np.load(path(out, f"{i}.map.npy")) for i in range(3)])

        for method in METHODS:
            expected = maps(path("vit"), method, f"vit-{method}")
            for name in ("free", "one"):
                found = maps("onnx:" + path(name + ".onnx"), method, f"{name}-{method}")
                off = float(np.abs(found - expected).max() / np.abs(expected).max())
                good = off <= 1e-4 and float(expected.std()) > 0
                failures += not good
                print(f"{method:8} batch {name:4} off by {off:.1e} of the largest value{'' if good else '  FAILED'}", flush=True)
    sys.exit(1 if failures else 0)


main()
