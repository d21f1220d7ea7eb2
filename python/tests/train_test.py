"""Training from Python, and the examples."""

import os
import subprocess
import sys
import tempfile
import unittest

from common import FIXTURES, PHOTO, SOURCE, TINY, aha, np, pixels

FEW = {"epochs": 1, "search": False, "holdout": 2}


def write_photos(folder, n, size=40):
    """A folder of PNG files, one subfolder."""
    os.makedirs(os.path.join(folder, "all"), exist_ok=True)
    files = []
    for i in range(n):
        path = os.path.join(folder, "all", f"{i}, a photo.png")
        aha.overlay(pixels(1, size, seed=i)[0], np.ones((size, size)), opacity=0).save(path)
        files.append(path)
    return files


class Train(unittest.TestCase):
    def test_an_explainer_is_trained_told_about_and_used(self):
        with tempfile.TemporaryDirectory() as folder:
            files = write_photos(folder, 12)
            m = aha.load(TINY)
            told = []
            done = aha.train(m, files, out=os.path.join(folder, "out"), callback=told.append, **FEW)
            self.assertEqual((done.images, done.unreadable), (12, 0))
            self.assertGreater(done.steps, 0)
            self.assertTrue(any(one.what == "train" and one.done == one.total for one in told), told)
            a = done.explainer()(PHOTO)
            np.testing.assert_array_equal(aha.Explainer("aha", m, explainer=done.out)(PHOTO), a)
            self.assertGreater(a.std(), 0)

    def test_a_callback_ends_it_by_false_or_by_what_it_raises(self):
        with tempfile.TemporaryDirectory() as folder:
            write_photos(folder, 12)
            m = aha.load(TINY)
            with self.assertRaises(aha.Canceled):
                aha.train(m, folder, out=os.path.join(folder, "a"), callback=lambda progress: False, **FEW)

            def breaks(progress):
                raise KeyError(progress.what)

            with self.assertRaises(KeyError):
                aha.train(m, folder, out=os.path.join(folder, "b"), callback=breaks, **FEW)

    def test_wrong_calls_are_refused(self):
        m = aha.load(TINY)
        for data, keywords, words in [
            ([], {}, "found none"),
            (3, {}, "found int"),
            ("folder:no-such-folder", {}, "no-such-folder"),
            ([3], {}, "expected files"),
            (os.path.join(FIXTURES, "good"), {"epoch": 3}, "epochs"),
            (os.path.join(FIXTURES, "good"), {"epochs": -3}, "epochs"),
        ]:
            with self.subTest(words), tempfile.TemporaryDirectory() as folder:
                with self.assertRaisesRegex(aha.InputError, words):
                    aha.train(m, data, out=os.path.join(folder, "out"), **keywords)
        with self.assertRaisesRegex(aha.InputError, "found a callable"):
            aha.train(aha.load(lambda x: x.mean((2, 3)), size=16), "cifar10:sample", out="unused")


class Examples(unittest.TestCase):
    def run_example(self, name, *arguments):
        done = subprocess.run(
            [sys.executable, os.path.join(SOURCE, "examples", "python", name), *arguments],
            capture_output=True,
            text=True,
            timeout=240,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_explain_one_photo(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "map.png")
            text = self.run_example("explain_photo.py", TINY, PHOTO, out, "chefer")
            self.assertIn("insertion", text)
            self.assertTrue(os.path.getsize(out) > 0)

    def test_evaluate_maps_from_another_tool(self):
        with tempfile.TemporaryDirectory() as folder:
            text = self.run_example("evaluate_other_maps.py", TINY, *write_photos(folder, 4))
            self.assertIn("best by ins-del", text)
            self.assertIn("gray patches", text)

    def test_train_on_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            write_photos(os.path.join(folder, "photos"), 12)
            text = self.run_example(
                "train_on_folder.py", TINY, os.path.join(folder, "photos"), os.path.join(folder, "out"), "1"
            )
            self.assertIn("insertion", text)


if __name__ == "__main__":
    unittest.main()
