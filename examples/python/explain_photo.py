"""Which pixels of a photo drove the decision: prints the class and the scores, saves the map over the photo.

    export PYTHONPATH=build/release/python
    python3 examples/python/explain_photo.py cifar10-vit4 PHOTO OUT.png [METHOD]

MODEL is a bundled model, ARCH:FILE of weights, onnx:FILE or script:FILE; METHOD one of aha.methods(). Without
it the trained explainer of the model is used where there is one.
"""

import sys

import aha

if len(sys.argv) not in (4, 5):
    sys.exit(__doc__)
spec, photo, out = sys.argv[1:4]
model = aha.load(spec)
method = sys.argv[4] if len(sys.argv) > 4 else "aha" if "aha" in model.methods else "gradient"

one = aha.Explainer(method, model).explain(photo)[0]
print(f"{photo}: class {one.class_index} {one.class_name}, probability {one.probability:.3f}")
print(
    f"{method}: deletion {one.deletion:.3f} (random map {one.random_deletion:.3f}), "
    f"insertion {one.insertion:.3f} (random map {one.random_insertion:.3f}), {1000 * one.seconds:.0f} ms"
)
one.overlay(contours=True).save(out)
print(out)
