. "$(dirname "$0")/lib.subr"

expect 0 models
says "vit_b_16"
says "convnext_small"
says "dinov3_vitl16"
says "smoothgrad"
says "smoothgrad:samples="
says "higher is better"
says "the paper's tables"
says "resnet50-imagenet"
says "hiera-tiny"
says "hiera_tiny"
expect 0 models --json
if command -v python3 >/dev/null; then
  python3 - <<'PY' || fail "expected the document of the contract"
import json
models = json.load(open("out"))
assert set(models) == {"bundled", "fetched", "gettable", "architectures", "methods", "metrics", "protocols"}, models.keys()
assert {a["kind"] for a in models["architectures"]} == {"classifier", "encoder"}
methods = {m["name"]: m for m in models["methods"]}
assert methods["chefer"]["needs"] and methods["random"]["needs"] == "" and methods["aha"]["summary"]
assert methods["chefer"]["kind"] == "For transformers" and not methods["random"]["reads_class"]
assert methods["maps"]["usage"] == "maps:FOLDER" and methods["ablationcam"]["note"]
assert {"name", "type", "default", "help"} == set(methods["ig"]["options"][0])
metrics = {m["name"]: m for m in models["metrics"]}
assert metrics["insertion"]["higher_is_better"] and not metrics["deletion"]["higher_is_better"]
assert metrics["ins-del"]["parts"] == ["deletion", "insertion"]
protocols = {p["name"]: p for p in models["protocols"]}
assert protocols["paper"]["steps"] == 10 and protocols["paper"]["references"] == ["black", "mean", "blur"]
PY
fi
says '"architectures"'

# What lies in the folder of bundled models is listed.
mkdir -p bundled && cp -r "$FIXTURES/tiny" bundled/tiny
AHA_MODELS=bundled expect 0 models --json
says '"name": "tiny"'
says '"kind": "classifier"'
