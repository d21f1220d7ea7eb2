"""Trains an explainer for a classifier on a folder of photos, then uses it.

    export PYTHONPATH=build/release/python
    python3 examples/python/train_on_folder.py MODEL PHOTOS OUT [EPOCHS]

PHOTOS has one subfolder per class; labels are not used, so that a single one with all photos is enough.
Ctrl-C ends it; the same call with resume=True goes on.
"""

import sys

import aha

if len(sys.argv) not in (4, 5):
    sys.exit(__doc__)
spec, photos, out = sys.argv[1:4]
epochs = int(sys.argv[4]) if len(sys.argv) > 4 else 10


def show(progress):
    print(f"\r{progress.what}: {progress.done} of {progress.total} {progress.note}", end="", flush=True)


model = aha.Session(seed=1).load(spec)
trained = aha.train(model, photos, out=out, epochs=epochs, search=False, callback=show)
print(
    f"\n{trained.out}: {trained.steps} steps on {trained.images} images in {trained.seconds:.0f} s; "
    f"held out: "
    f"insertion {trained.insertion:.3f}, deletion {trained.deletion:.3f}"
)

explainer = trained.explainer(refine=1)
print(explainer, "is ready:", explainer.__doc__.splitlines()[0])
