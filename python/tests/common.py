"""What the tests share: where things are, and skipping with a word."""

import os
import subprocess
import sys
import unittest

SKIPPED = 77  # as ctest knows it


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


try:
    import aha  # before numpy, as it sets what OpenBLAS reads
    import numpy as np
except ImportError as error:
    skip(f"{error}")

FIXTURES = os.environ.get("AHA_FIXTURES", "build/release/fixtures")
SOURCE = os.environ.get("AHA_SOURCE", ".")
PROGRAM = os.path.join(os.path.dirname(FIXTURES), "bin", "aha")
TINY = os.path.join(FIXTURES, "tiny")  # a transformer of five classes for 32 x 32 pixels
PHOTO = os.path.join(FIXTURES, "good", "a.png")


def pixels(n, size=32, seed=0):
    return np.random.default_rng(seed).random((n, 3, size, size), dtype=np.float32)


def run_python(code, *arguments, **environment):
    """Output of a Python program of its own; fails where that does."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, **environment},
    )
    if done.returncode != 0:
        raise AssertionError(f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def has(module):
    """Whether it is installed, without importing it."""
    import importlib.util

    return importlib.util.find_spec(module) is not None


needs_torch = unittest.skipUnless(has("torch"), "python3-torch is not installed")
needs_pil = unittest.skipUnless(has("PIL"), "python3-pil is not installed")
needs_pandas = unittest.skipUnless(has("pandas"), "python3-pandas is not installed")
