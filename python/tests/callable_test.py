"""Functions as classifiers, and evaluation of maps that somebody else made."""

import unittest
import warnings

from common import TINY, aha, needs_pandas, np, pixels


def red_corner(x):
    """logit_0 is the red of the left upper quarter, logit_1 is 1."""
    return np.stack([x[:, 0, :8, :8].sum((1, 2)) / 8, np.ones(len(x))], 1)


def red_corner_gradient(x, weights):
    gradient = np.zeros_like(x)
    gradient[:, 0, :8, :8] = weights[:, :1, None] / 8
    return gradient


def corner_share(a):
    a = np.maximum(a, 0)
    return a[:, :8, :8].sum() / a.sum()


class Callables(unittest.TestCase):
    def test_a_function_is_explained_without_gradients_and_with_its_own(self):
        m = aha.load(red_corner, size=16)
        self.assertEqual((m.classes, m.size, m.name), (2, 16, "red_corner"))
        white = np.ones((1, 3, 16, 16), np.float32)
        self.assertGreater(corner_share(aha.Explainer("occlusion", m)(white, 0)), 0.6)
        self.assertNotIn("gradient", m.methods)
        for method in ("gradient", "ig", "inverted:smoothgrad"):
            with self.assertRaisesRegex(aha.InputError, "came without a function"):
                aha.Explainer(method, m)
        with self.assertRaisesRegex(aha.InputError, "came without a function"):
            aha.Explainer("mda", m)(white, 0)  # asks for them when it runs
        whole = aha.load(red_corner, size=16, gradient=red_corner_gradient)
        self.assertIn("gradient", whole.methods)
        self.assertAlmostEqual(corner_share(aha.Explainer("gradient", whole)(white, 0)), 1, 6)

    def test_a_function_sees_what_mean_and_std_say_and_may_change_what_it_gets(self):
        seen = []

        def ask(x):
            seen.append((x.min(), x.max()))
            x *= 0
            return np.ones((len(x), 3))

        x = pixels(2, 16)
        np.testing.assert_array_equal(aha.load(ask, size=16, mean=(0.5,) * 3, std=(0.25,) * 3).pixels(x), x)
        aha.load(ask, size=16, classes=3, mean=(0.5,) * 3, std=(0.25,) * 3).logits(x)
        self.assertEqual(
            seen[-1],
            ((x.min() - np.float32(0.5)) / np.float32(0.25), (x.max() - np.float32(0.5)) / np.float32(0.25)),
        )
        with self.assertRaisesRegex(aha.InputError, "std: expected three positive numbers"):
            aha.load(ask, size=16, std=(1, 0, 1))

    def test_gradients_go_through_the_normalization(self):
        plain = aha.load(red_corner, size=16, gradient=red_corner_gradient)
        halved = aha.load(
            lambda x: red_corner(x * 0.25 + 0.5),
            size=16,
            mean=(0.5,) * 3,
            std=(0.25,) * 3,
            gradient=lambda x, w: red_corner_gradient(x, w) * 0.25,
        )
        x = pixels(1, 16)
        np.testing.assert_allclose(
            aha.Explainer("gradient", halved)(x, 0), aha.Explainer("gradient", plain)(x, 0), rtol=1e-5
        )

    def test_what_a_function_raises_is_raised_where_the_call_was_made(self):
        class Mine(Exception):
            pass

        calls = []

        def breaks(x):
            calls.append(len(x))
            if len(calls) > 2:
                raise Mine("the words")
            return np.ones((len(x), 2))

        m = aha.load(breaks, size=16)
        with self.assertRaisesRegex(Mine, "the words"):
            aha.Explainer("rise", m, masks=64)(pixels(1, 16))
        calls.clear()
        calls.append(0)
        self.assertEqual(m.logits(pixels(1, 16)).shape, (1, 2))  # works again

    def test_answers_of_another_shape_or_kind_are_refused(self):
        for answer, words in [
            (
                lambda x: np.ones((len(x), 3)),
                r"logits of the callable: expected shape \(1, 2\), found \(1, 3\)",
            ),
            (lambda x: np.ones(2), r"found \(2,\)"),
            (lambda x: "cat", "found str"),
            (lambda x: None, "NoneType"),
        ]:
            with self.subTest(words), self.assertRaisesRegex(aha.InputError, words):
                aha.load(answer, classes=2, size=16).logits(pixels(1, 16))
        bad = aha.load(red_corner, size=16, gradient=lambda x, w: w)
        with self.assertRaisesRegex(aha.InputError, "gradient of the callable: expected shape"):
            aha.Explainer("gradient", bad)(pixels(1, 16))
        with self.assertRaisesRegex(aha.InputError, "one image"):
            aha.load(lambda x: np.ones(2), size=16)
        with self.assertRaisesRegex(aha.InputError, "2 classes or more"):
            aha.load(lambda x: np.ones((len(x), 1)), size=16)

    def test_a_function_that_asks_for_itself_is_refused(self):
        m = aha.load(lambda x: m.logits(x), classes=2, size=16)
        with self.assertRaisesRegex(aha.InputError, "its own model"):
            m.logits(pixels(1, 16))

    def test_not_a_number_from_a_function_is_work_that_failed(self):
        m = aha.load(lambda x: np.full((len(x), 2), np.nan), size=16)
        with self.assertRaises(aha.Error):
            aha.Explainer("occlusion", m)(pixels(1, 16), 0)

    def test_a_function_may_explain_another_model_itself(self):
        inner = aha.load(TINY)
        outer = aha.load(lambda x: inner.logits(x), size=32)
        np.testing.assert_allclose(outer.logits(pixels(2)), inner.logits(pixels(2)), rtol=1e-5)


class Evaluate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.m = aha.load(red_corner, size=16)
        cls.x = 1 - 0.1 * pixels(6, 16)
        corner = np.zeros((16, 16), np.float32)
        corner[:8, :8] = 1
        noise = 0.01 * pixels(6, 16)[:, 0]
        cls.maps = {"good": corner + noise, "bad": -corner + noise}
        cls.y = np.zeros(6, int)
        cls.r = aha.evaluate(cls.m, cls.x, cls.y, cls.maps, metrics=["ins-del"], references="black")

    def test_the_better_map_is_better_by_mean_interval_and_paired_difference(self):
        r = self.r
        self.assertEqual(r.metrics, ["deletion", "insertion", "ins-del"])
        good, bad = r["ins-del"]["good"], r["ins-del"]["bad"]
        self.assertGreater(good.low, bad.high)
        self.assertAlmostEqual(good.mean, good.per_image.mean(), 9)
        self.assertTrue(good.low <= good.mean <= good.high)
        d = r.difference("ins-del", "good", "bad")
        self.assertAlmostEqual(d.mean, (good.per_image - bad.per_image).mean(), 9)
        self.assertEqual((d.win_rate, d.images), (1, 6))
        self.assertEqual(r.best("deletion"), "good")
        self.assertIn("good - bad", repr(r))
        self.assertIn("<table>", r._repr_html_())

    def test_the_level_of_the_interval_is_asked_for(self):
        narrow = aha.evaluate(
            self.m, self.x, self.y, self.maps, metrics="ins-del", references="black", ci=0.5
        )
        of = lambda r: (lambda v: v.high - v.low)(r["ins-del"]["good"])
        self.assertLess(of(narrow), of(self.r))
        d, w = narrow.difference("ins-del", "good", "bad"), self.r.difference("ins-del", "good", "bad")
        self.assertLess(d.high - d.low, w.high - w.low)
        self.assertIn("50 % interval", repr(narrow))
        with self.assertRaisesRegex(aha.InputError, "ci"):
            aha.evaluate(self.m, self.x, self.y, self.maps, ci=1.5)

    def test_maps_of_any_kind_and_size_are_taken(self):
        maps = {
            "plain": self.maps["good"],
            "one channel": self.maps["good"][:, None],
            "double": self.maps["good"].astype(np.float64),
            "list": list(self.maps["good"]),
            "strided": np.repeat(self.maps["good"], 2, 2)[:, :, ::2],
            "twice": np.kron(self.maps["good"], np.ones((1, 2, 2))),
            "half": self.maps["good"][:, ::2, ::2],
            "method": aha.Explainer("center", self.m),
        }
        r = aha.evaluate(self.m, self.x, None, maps, metrics=["ins-del"], references=["black"])
        for same in ("one channel", "double", "list", "strided"):
            np.testing.assert_array_equal(r["ins-del"][same].per_image, r["ins-del"]["plain"].per_image)
        self.assertTrue(np.isfinite(r["ins-del"]["half"].per_image).all())

    def test_an_image_without_a_usable_map_counts_for_none_and_is_named(self):
        maps = {name: a.copy() for name, a in self.maps.items()}
        maps["bad"][2] = np.nan
        maps["good"][4] = 7
        r = aha.evaluate(self.m, self.x, self.y, maps, metrics=["ins-del"], references="black")
        self.assertEqual(r["ins-del"]["good"].images, 4)
        np.testing.assert_array_equal(np.isnan(r["ins-del"]["good"].per_image), [0, 0, 1, 0, 1, 0])
        self.assertTrue(r.remarks)

    def test_wrong_maps_are_refused(self):
        x, m = self.x, self.m
        for maps, words in [
            ({}, "found none"),
            (self.maps["good"], "by name"),
            ({"a": self.maps["good"][:2]}, r"expected shape \(6,"),
            ({"a": x}, "one number for each pixel"),
            ({"a": "file"}, "found str"),
            ({"a": [1, 2]}, "expected shape"),
            ({"a": np.zeros((6, 0, 3), np.float32)}, "expected shape"),
        ]:
            with self.subTest(words), self.assertRaisesRegex(aha.InputError, words):
                aha.evaluate(m, x, None, maps)
        for keywords, words in [
            ({"metrics": ["insertoin"]}, "insertion"),
            ({"metrics": "pointing"}, "masks or boxes"),
            ({"references": "white"}, "black"),
            ({"step": 3}, "steps"),
            ({"y": "cat"}, "name"),
        ]:
            with self.subTest(words), self.assertRaisesRegex(aha.InputError, words):
                aha.evaluate(m, x, keywords.pop("y", None), self.maps, **keywords)
        with self.assertRaisesRegex(aha.InputError, "available: deletion"):
            self.r["road"]
        with self.assertRaisesRegex(aha.InputError, "available: good, bad"):
            self.r.difference("ins-del", "good", "ugly")

    @needs_pandas
    def test_frames_hold_the_same_numbers(self):
        means = self.r.to_pandas()
        self.assertEqual(means.loc[("ins-del", "good"), "mean"], self.r["ins-del"]["good"].mean)
        images = self.r.to_pandas("images")
        np.testing.assert_array_equal(images[("ins-del", "bad")], self.r["ins-del"]["bad"].per_image)
        self.assertEqual(len(self.r.to_pandas("differences")), 3)


if __name__ == "__main__":
    warnings.simplefilter("error")
    unittest.main()
