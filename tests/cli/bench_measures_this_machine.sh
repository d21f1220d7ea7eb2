. "$(dirname "$0")/lib.subr"

# A list of its own keeps this short.
mkdir problems
printf '96 64 96 tiny\n' >problems/gemm.txt
printf '1 1 17 32 tiny\n' >problems/attention.txt
printf '70 64 96 tiny\n' >problems/weight_gradient.txt
printf '2 5 32 tiny\n' >problems/depthwise.txt
printf '5 8 20 tiny\n' >problems/convolution.txt
printf '2 small vit_mini_8:depth=2:width=64:heads=2:mlp_hidden=64\nlong 1 never vit_l_16\n' >problems/networks.txt
printf '49 1 1\n49 1 0\n' >problems/sinkhorn.txt
printf '2 2 4 small vit_mini_8:depth=2\n' >problems/train.txt
printf '1 2 4 small vit_mini_8:depth=2\n' >problems/refine.txt
printf '2 10 small vit_mini_8:depth=2\n' >problems/eval.txt
printf '3 small vit_mini_8:depth=2\n' >problems/eval-run.txt
printf '2 small vit_mini_8:depth=2\n2 conv convnext_mini:depths=1,1,1\n' >problems/fit.txt
printf '2 small vit_mini_8:depth=2 gradcam ig:steps=2\nlong 1 never vit_l_16 rise\n' >problems/methods.txt
AHA_PROBLEMS=$PWD/problems
export AHA_PROBLEMS

expect 0 bench --only sinkhorn
says "low-rank"
says "autograd"
expect 0 bench --only networks,sinkhorn,eval-run,fit,methods --peer --json
[ ! -s err ] || fail "expected nothing on stderr"
cp out peer.json
expect 0 bench --json --threads 1 --batch-size 1
if command -v python3 >/dev/null; then
  python3 - <<'PY' || fail "expected the document of the contract"
import json
def positive(row, *keys):
    for key in keys:
        assert row[key] > 0, (key, row)
whole, peer = json.load(open("out")), json.load(open("peer.json"))
assert set(whole) == {"machine", "kernels", "networks", "sinkhorn", "train", "refine", "eval", "eval-run", "fit", "methods"}, whole.keys()
assert set(peer) == {"machine", "networks", "sinkhorn", "eval-run", "fit", "methods"}, peer.keys()
positive(whole["machine"], "cores", "memory_mb")
assert whole["machine"]["threads"] == 1 and whole["machine"]["cpu"] and whole["machine"]["isa_why"]
assert {"gemm", "attention", "attention back", "weight gradient", "depthwise", "depthwise back", "convolution",
        "layer norm"} <= {row["kernel"] for row in whole["kernels"]}
for row in whole["kernels"]:
    positive(row, "gflops", "share_of_peak", "ms")
    assert row["problem"] and row["isa"]
assert [row["precision"] for row in whole["networks"]] == ["f32", "bf16"]
for row in whole["networks"]:
    positive(row, "forward_ms", "forward_backward_ms")
    assert row["name"] == "small" and row["batch"] == 1 and row["threads"] == 1 and "peer" not in row
for row in peer["networks"]:
    assert row["batch"] == 2
    positive(row, "forward_ms", "forward_backward_ms")
    positive(row["peer"], "forward_ms", "forward_backward_ms")
    positive(row["peer_as_shipped"], "forward_ms", "forward_backward_ms")
assert [row["path"] for row in peer["sinkhorn"]] == ["dense", "low-rank"]
for row in peer["sinkhorn"]:
    positive(row, "K", "ms", "memory_mb")
    positive(row["peer"], "ms")
positive(whole["train"][0], "step_ms", "features_ms", "decoder_forward_ms", "soft_sort_ms", "target_ms", "backward_and_update_ms")
positive(whole["refine"][0], "refine", "ms")
positive(whole["eval"][0], "steps", "ms")
run = peer["eval-run"][0]
positive(run, "per_second", "forward_per_second", "share_of_forward")
positive(run["peer"], "per_second")
# 3 images x 4 methods x 3 references x 18 removals, and each image whole and replaced
assert run["images"] == 3 and run["perturbed_images"] == 3 * 4 * 3 * 18 + 3 * 4, run
assert "peer" not in whole["eval-run"][0]
assert [(row["name"], row["precision"]) for row in peer["fit"]] == [(n, p) for n in ("small", "conv") for p in ("f32", "bf16")]
for row in peer["fit"]:
    positive(row, "batch", "ms")
    positive(row["peer"], "ms")
positive(whole["fit"][0], "ms")
assert "peer" not in whole["fit"][0] and whole["fit"][0]["batch"] == 1
assert [row["method"] for row in peer["methods"]] == ["gradcam", "ig:steps=2"]
for row in peer["methods"]:
    assert row["network"] == "small" and row["batch"] == 2
    positive(row, "ms", "alone_ms")
    positive(row["peer"], "ms", "alone_ms")
assert [row["passes"] for row in whole["methods"]] == [{"forwards": 1, "backwards": 0.5}, {"forwards": 2, "backwards": 2}]  # of two blocks one
assert whole["methods"][0]["batch"] == 1 and "peer" not in whole["methods"][0]
PY
fi

refuses "did you mean 'kernels'" bench --only kernel
refuses "exclude each other" bench --eager --peer
refuses "small" bench --only networks --network smal
refuses "--onyl" bench --onyl kernels
printf '2 small vit_mini_8\n' >problems/methods.txt
refuses "expected a batch, a name, an architecture and methods, found '2 small vit_mini_8'" bench --only methods
printf '2 small vit_mini_8 gradcm\n' >problems/methods.txt
refuses "did you mean 'gradcam'" bench --only methods
printf '49 1\n' >problems/sinkhorn.txt
refuses "expected 3 numbers, found '49 1'" bench --only sinkhorn
