"""ROAD's linear imputation against SciPy's sparse solver, on a photo.

usage: metrics_parity.py METRICS_PROBE SHARED TREE

The photo is one of SHARED/data/imagenet where it is there, else one of TREE/docs/images, at 224 x 224. The equations are written down as
the public code has them: -(1 - weight outside) on the diagonal, the weights of missing neighbors beside it, minus the weighted sum of known
neighbors on the right. Exit 77 where SciPy, numpy or Pillow is missing.
"""
import glob
import os
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
    from PIL import Image
    from scipy.ndimage import gaussian_filter
    from scipy.sparse import coo_matrix
    from scipy.sparse.linalg import splu
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

SIDE = 224
TOLERANCE = 1e-4
NEIGHBORS = [(dy, dx, 1 / 12 if dy and dx else 1 / 6) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx]


def imputed(image, missing):
    unknown = np.flatnonzero(missing)
    row_of = np.full(missing.size, -1)
    row_of[unknown] = np.arange(unknown.size)
    diagonal, right = -np.ones(unknown.size), np.zeros((unknown.size, image.shape[0]))
    rows, columns, values = [], [], []
    flat = image.reshape(image.shape[0], -1)
    for dy, dx, weight in NEIGHBORS:
        y, x = unknown // SIDE + dy, unknown % SIDE + dx
        inside = (y >= 0) & (y < SIDE) & (x >= 0) & (x < SIDE)
        diagonal[~inside] += weight
        row = np.flatnonzero(inside)
        neighbor = y[inside] * SIDE + x[inside]
        known = row_of[neighbor] < 0
        right[row[known]] -= weight * flat[:, neighbor[known]].T
        rows.append(row[~known])
        columns.append(row_of[neighbor[~known]])
        values.append(np.full(int((~known).sum()), weight))
    count = np.arange(unknown.size)
    matrix = coo_matrix((np.concatenate([diagonal, *values]), (np.concatenate([count, *rows]), np.concatenate([count, *columns]))))
    out = flat.copy()
    factors = splu(matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0, options={"SymmetricMode": True})
    out[:, unknown] = factors.solve(right).T
    return out.reshape(image.shape)


def main():
    probe, shared, tree = sys.argv[1:4]
    photos = sorted(glob.glob(os.path.join(shared, "data/imagenet/check/*.jpg"))) + sorted(glob.glob(os.path.join(tree, "docs/images/*.jpg")))
    pixels = np.asarray(Image.open(photos[0]).convert("RGB").resize((SIDE, SIDE)), np.float32).transpose(2, 0, 1) / 255
    random = np.random.default_rng(1)
    maps = {"noise": random.standard_normal((SIDE, SIDE))}
    maps["smooth noise"] = gaussian_filter(maps["noise"], 20)
    failures = compared = 0
    with tempfile.TemporaryDirectory() as folder:
        names = [os.path.join(folder, name) for name in ("image.npy", "missing.npy", "out.npy")]
        np.save(names[0], pixels)
        with subprocess.Popen([probe], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            for name, values in maps.items():
                for share in (0.1, 0.5, 0.9):
                    missing = (values >= np.quantile(values, 1 - share)).astype(np.float32)
                    np.save(names[1], missing)
                    process.stdin.write("\t".join(["impute", *names]) + "\n")
                    process.stdin.flush()
                    answer = process.stdout.readline().strip()
                    began = time.time()
                    expected = imputed(pixels.astype(np.float64), missing.ravel() != 0)
                    theirs = time.time() - began
                    if not answer.endswith("seconds"):
                        raise SystemExit(f"the probe said: {answer}")
                    worst = np.abs(np.load(names[2]) - expected).max()
                    compared += 1
                    failures += not worst < TOLERANCE
                    print(f"{name}, {share:.0%} missing: largest difference {worst:.2g}, {answer}, SciPy {theirs:.3f} seconds")
            process.stdin.close()
    print(f"{compared} compared, {failures} differ by {TOLERANCE} or more")
    sys.exit(failures > 0)


main()
