"""Our ViT, ConvNeXt and ResNet against torchvision's, with random weights that are not degenerate.

usage: models_parity.py MODELS_PROBE

Logits agree within 1e-4 and input gradients within 1e-3 (largest difference over largest value; ResNet's gradients are compared in float64, see below). The same weights renamed to the names of timm and of
Hugging Face do too: timm's give the very same logits; Hugging Face's are held against torchvision's network with Hugging Face's LayerNorm epsilon. ResNet has the same names in torchvision and timm. Exits 77 (skipped) where torch or torchvision is not installed.
"""
import os
import re
import subprocess
import sys
import tempfile

try:
    import numpy
    import torch
    import torchvision
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


def randomize(model, seed):
    """Every number matters: layer scales near a half, heads that are not zero, norms that are not one."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if name.endswith("layer_scale"):
                parameter.copy_(0.5 + 0.1 * noise)
            elif parameter.dim() == 1:
                parameter.copy_((1.0 if name.endswith("weight") else 0.0) + 0.1 * noise)
            else:
                fan_in = parameter[0].numel() if parameter.dim() > 1 else 1
                parameter.copy_(noise * (0.02 if "pos" in name or "token" in name else fan_in ** -0.5))
        for name, buffer in model.named_buffers():
            noise = torch.randn(buffer.shape, generator=generator)
            if name.endswith("running_mean"):
                buffer.copy_(0.1 * noise)
            elif name.endswith("running_var"):
                buffer.copy_(1 + 0.5 * noise.abs())


def timm_vit(name):
    for pattern, new in [
        (r"^conv_proj\.", "patch_embed.proj."),
        (r"^class_token$", "cls_token"),
        (r"^encoder\.pos_embedding$", "pos_embed"),
        (r"^encoder\.ln\.", "norm."),
        (r"^heads\.head\.", "head."),
        (r"^encoder\.layers\.encoder_layer_(\d+)\.", r"blocks.\1."),
        (r"\.ln_([12])\.", r".norm\1."),
        (r"\.self_attention\.in_proj_", ".attn.qkv."),
        (r"\.self_attention\.out_proj\.", ".attn.proj."),
        (r"\.mlp\.0\.", ".mlp.fc1."),
        (r"\.mlp\.3\.", ".mlp.fc2."),
    ]:
        name = re.sub(pattern, new, name)
    return name


def huggingface_vit(state):
    out = {}
    for name, value in state.items():
        name = timm_vit(name)
        name = re.sub(r"^patch_embed\.proj\.", "vit.embeddings.patch_embeddings.projection.", name)
        name = re.sub(r"^cls_token$", "vit.embeddings.cls_token", name)
        name = re.sub(r"^pos_embed$", "vit.embeddings.position_embeddings", name)
        name = re.sub(r"^norm\.", "vit.layernorm.", name)
        name = re.sub(r"^head\.", "classifier.", name)
        name = re.sub(r"^blocks\.(\d+)\.", r"vit.encoder.layer.\1.", name)
        for old, new in [("norm1", "layernorm_before"), ("norm2", "layernorm_after"), ("attn.proj", "attention.output.dense"),
                         ("mlp.fc1", "intermediate.dense"), ("mlp.fc2", "output.dense")]:
            name = name.replace(f".{old}.", f".{new}.")
        if ".attn.qkv." in name:
            for part, third in zip(("query", "key", "value"), value.chunk(3)):
                out[name.replace(".attn.qkv.", f".attention.attention.{part}.")] = third.clone()
        else:
            out[name] = value
    return out


def convnext(state, dialect):
    out = {}
    for name, value in state.items():
        parts = name.split(".")
        if parts[0] == "classifier":
            timm = {"0": "head.norm", "2": "head.fc"}[parts[1]] + "." + parts[2]
            hugging = {"0": "convnext.layernorm", "2": "classifier"}[parts[1]] + "." + parts[2]
        elif parts[1] == "0":
            timm = f"stem.{parts[2]}.{parts[3]}"
            hugging = "convnext.embeddings." + ("patch_embeddings", "layernorm")[int(parts[2])] + "." + parts[3]
        elif int(parts[1]) % 2 == 0:
            stage = int(parts[1]) // 2
            timm = f"stages.{stage}.downsample.{parts[2]}.{parts[3]}"
            hugging = f"convnext.encoder.stages.{stage}.downsampling_layer.{parts[2]}.{parts[3]}"
        else:
            stage, block = int(parts[1]) // 2, parts[2]
            if parts[3] == "layer_scale":
                own, other, value = "gamma", "layer_scale_parameter", value.flatten()
            else:
                which = parts[4]
                own = {"0": "conv_dw", "2": "norm", "3": "mlp.fc1", "5": "mlp.fc2"}[which] + "." + parts[5]
                other = {"0": "dwconv", "2": "layernorm", "3": "pwconv1", "5": "pwconv2"}[which] + "." + parts[5]
            timm = f"stages.{stage}.blocks.{block}.{own}"
            hugging = f"convnext.encoder.stages.{stage}.layers.{block}.{other}"
        out[timm if dialect == "timm" else hugging] = value
    return out


def set_huggingface_epsilon(model):
    """1e-12 in every LayerNorm of its ViT and in the last one of its ConvNeXt, where torchvision has 1e-6."""
    norms = [module for module in model.modules() if isinstance(module, torch.nn.LayerNorm)]
    for norm in norms if isinstance(model, torchvision.models.VisionTransformer) else [model.classifier[0]]:
        norm.eps = 1e-12


def answers(model, x):
    logits = model(x)
    (gradient,) = torch.autograd.grad(logits[:, 7].sum(), x)
    return logits.detach().numpy(), gradient.numpy()


def relative(found, expected):
    return float(numpy.abs(found - expected).max() / numpy.abs(expected).max())


def main(probe):
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0))))
    failures = 0
    for architecture, batch in [("vit_b_16", 2), ("vit_b_32", 3), ("convnext_small", 2), ("resnet18", 2), ("resnet50", 2)]:
        with tempfile.TemporaryDirectory() as folder:
            model = getattr(torchvision.models, architecture)(weights=None).eval()
            randomize(model, 1)
            x = torch.randn(batch, 3, 224, 224, generator=torch.Generator().manual_seed(2), requires_grad=True)
            numpy.save(f"{folder}/x.npy", x.detach().numpy())
            state = model.state_dict()
            if architecture.startswith("vit"):
                files = {"torchvision": state, "timm": {timm_vit(k): v for k, v in state.items()}, "huggingface": huggingface_vit(state)}
            elif architecture.startswith("convnext"):
                files = {"torchvision": state, "timm": convnext(state, "timm"), "huggingface": convnext(state, "huggingface")}
            else:
                files = {"torchvision": state}
            first = None
            for source, renamed in files.items():
                if source == "huggingface":
                    set_huggingface_epsilon(model)
                logits, gradient = answers(model, x)
                torch.save(renamed, f"{folder}/w.pth")
                subprocess.run([probe, f"{architecture}:{folder}/w.pth", f"{folder}/x.npy", f"{folder}/l.npy", f"{folder}/g.npy"], check=True)
                ours, our_gradient = numpy.load(f"{folder}/l.npy"), numpy.load(f"{folder}/g.npy")
                checks = [("logits", relative(ours, logits), 1e-4)]
                if architecture.startswith("resnet"):
                    # In float32 a ReLU whose input is within rounding of zero switches, and every pixel it sees changes: folding BatchNorm moves
                    # torchvision's own gradient by 3.9e-2. So both networks run in float64.
                    wide = x.detach().double().requires_grad_()
                    logits, gradient = answers(model.double(), wide)
                    model.float()
                    subprocess.run([probe, f"{architecture}:{folder}/w.pth", f"{folder}/x.npy", f"{folder}/l.raw", f"{folder}/g.raw", "double"], check=True)
                    for what, file, expected in (("logits in float64", "l", logits), ("gradients in float64", "g", gradient)):
                        found = numpy.fromfile(f"{folder}/{file}.raw", dtype="<f8").reshape(expected.shape)
                        checks.append((what, relative(found, expected), 1e-12))
                else:
                    checks.append(("gradients", relative(our_gradient, gradient), 1e-3))
                if source == "torchvision":
                    first = ours
                elif source == "timm":
                    checks.append(("logits under torchvision's names", relative(ours, first), 0.0))
                for what, error, allowed in checks:
                    fine = error <= allowed
                    failures += not fine
                    print(f"{'ok  ' if fine else 'FAIL'} {architecture} {source}: {what} differ by {error:.2e}, allowed {allowed:.0e}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
