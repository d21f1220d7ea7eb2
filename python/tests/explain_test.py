"""Maps of images: what goes in, what comes out, what is refused."""

import os
import pickle
import subprocess
import tempfile
import unittest

from common import PHOTO, PROGRAM, TINY, aha, needs_pil, np, pixels


class Explain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.m = aha.load(TINY)
        cls.e = aha.Explainer("chefer", cls.m)

    def test_a_map_of_a_file_has_the_bits_of_the_command_line(self):
        with tempfile.TemporaryDirectory() as out:
            subprocess.run(
                [
                    PROGRAM,
                    "explain",
                    "--target",
                    TINY,
                    "--method",
                    "chefer",
                    "--no-score",
                    "--out",
                    out,
                    "--quiet",
                    PHOTO,
                ],
                check=True,
                stdout=subprocess.DEVNULL,
            )
            theirs = np.load(os.path.join(out, "a.map.npy"))
        ours = self.e(PHOTO)
        self.assertEqual(ours.shape, (1, 32, 32))
        np.testing.assert_array_equal(ours[0], theirs)

    def test_the_map_is_the_same_bits_alone_in_a_batch_and_from_any_strides(self):
        x = pixels(11)  # more than one batch of the library
        a = self.e(x)
        self.assertEqual((a.shape, a.dtype), ((11, 32, 32), np.float32))
        for i in (0, 7, 8, 10):
            np.testing.assert_array_equal(self.e(x[i])[0], a[i])
        wide = np.zeros((11, 3, 64, 64), np.float32)
        wide[:, :, ::2, ::2] = x
        for same in (
            np.asfortranarray(x),
            wide[:, :, ::2, ::2],
            x[:, :, ::-1].copy()[:, :, ::-1],
            x.astype(np.float64),
            list(x),
            tuple(x),
        ):
            np.testing.assert_array_equal(self.e(same), a)
        read_only = x.copy()
        read_only.flags.writeable = False
        np.testing.assert_array_equal(self.e(read_only), a)

    def test_the_result_is_the_librarys_memory_and_outlives_everything_else(self):
        m = aha.load(TINY)
        e = aha.Explainer("chefer", m)
        a = e(pixels(2))
        self.assertFalse(a.flags.owndata)
        kept = a[1].copy()
        row = a[1]
        del m, e, a
        np.testing.assert_array_equal(row, kept)

    def test_maps_are_plain_arrays_to_numpy_and_pictures_to_a_notebook(self):
        a = self.e(pixels(3))
        self.assertIsInstance(a, np.ndarray)
        self.assertEqual(a._repr_png_()[:8], b"\x89PNG\r\n\x1a\n")
        self.assertIs(type(a + 1), np.ndarray)
        self.assertIs(type(a.mean()), np.float32)
        again = pickle.loads(pickle.dumps(a))
        self.assertIs(type(again), np.ndarray)
        np.testing.assert_array_equal(again, a)

    def test_the_class_is_an_index_a_name_one_for_each_or_the_predicted_one(self):
        x = pixels(2)
        of_bee = self.e(x, target=1)
        np.testing.assert_array_equal(self.e(x, target="bee"), of_bee)
        np.testing.assert_array_equal(self.e(x, target=[1, 1]), of_bee)
        np.testing.assert_array_equal(self.e(x, target=np.array([[1], [1]], np.uint8)), of_bee)
        self.assertFalse(np.array_equal(self.e(x, target=[1, 2])[1], of_bee[1]))
        predicted = self.m.logits(x).argmax(1)
        np.testing.assert_array_equal(self.e(x), self.e(x, target=predicted))

    def test_bytes_and_files_are_photos_and_are_resized(self):
        photo = np.random.default_rng(1).integers(0, 256, (40, 48, 3), np.uint8)
        a = self.e(photo)
        self.assertEqual(a.shape, (1, 32, 32))
        np.testing.assert_array_equal(self.e(photo[None]), a)
        np.testing.assert_array_equal(self.e(photo.transpose(2, 0, 1)), a)
        np.testing.assert_array_equal(self.e(self.m.pixels(photo)), a)

    @needs_pil
    def test_a_pil_image_is_the_file_it_was_read_from(self):
        from PIL import Image

        with Image.open(PHOTO) as photo:
            mixed = self.e([photo, PHOTO, pixels(1)[0]])
        np.testing.assert_array_equal(mixed[0], mixed[1])
        self.assertFalse(np.array_equal(mixed[2], mixed[1]))

    def test_explanations_have_classes_scores_passes_and_a_picture(self):
        one, other = self.e.explain(pixels(2))
        self.assertEqual(one.class_name, self.m.class_names[one.class_index])
        self.assertTrue(0 < one.probability <= 1)
        self.assertTrue(np.isfinite([one.deletion, one.insertion, one.random_deletion]).all())
        self.assertGreaterEqual(one.forwards, 1)
        self.assertEqual(other.overlay().shape, (32, 32, 3))
        self.assertTrue(np.isnan(self.e.explain(pixels(1), score=False)[0].deletion))

    def test_options_of_a_method_are_keywords(self):
        x = pixels(1)
        few = aha.Explainer("rise", self.m, masks=16)
        self.assertEqual(few.method, "rise:masks=16")
        np.testing.assert_array_equal(few(x), aha.Explainer("rise:masks=16", self.m)(x))
        self.assertIn("masks=", few.__doc__)

    def test_attribute_is_captums(self):
        x = pixels(2)
        a = self.e.attribute(x, target=3)
        self.assertEqual(a.shape, (2, 1, 32, 32))
        np.testing.assert_array_equal(a[:, 0], self.e(x, target=3))
        with self.assertRaisesRegex(aha.InputError, "n_steps"):
            self.e.attribute(x, target=3, n_steps=5)

    def test_explain_func_is_quantus(self):
        explain = aha.explain_func("chefer", self.m)
        a = explain(model=None, inputs=pixels(2), targets=np.array([1, 2]), device="cpu")
        self.assertEqual(a.shape, (2, 1, 32, 32))
        middle, spread = 0.5, 0.25
        normalized = (pixels(2) - middle) / spread
        ask = lambda x: x.reshape(len(x), -1)[:, :4]
        f = aha.explain_func("occlusion", mean=(middle,) * 3, std=(spread,) * 3)
        b = f(model=ask, inputs=normalized, targets=np.array([1, 2]))
        c = aha.Explainer("occlusion", aha.load(ask, size=32, mean=(middle,) * 3, std=(spread,) * 3))(
            np.clip(normalized * np.float32(spread) + np.float32(middle), 0, 1), [1, 2]
        )
        np.testing.assert_array_equal(b[:, 0], c)

    def test_the_threads_of_a_session_do_not_change_a_bit(self):
        x = pixels(3)
        maps = [
            aha.Explainer("chefer", aha.Session(threads=threads, quiet=True).load(TINY))(x)
            for threads in (1, 2)
        ]
        np.testing.assert_array_equal(maps[0], maps[1])

    def test_records_say_what_there_is(self):
        methods = aha.methods()
        self.assertIn("chefer", self.m.methods)
        self.assertIn("2103.15679", str(methods["chefer"]))
        self.assertIn("rise", repr(methods))
        self.assertTrue(aha.metrics()["insertion"].higher_is_better)

    def test_wrong_input_is_refused_with_the_librarys_words(self):
        e, x = self.e, pixels(2)
        nan = x.copy()
        nan[1, 2, 3, 4] = np.nan
        for bad, words in [
            (nan, "image 1: pixels: expected values in 0..1, found nan in row 3, column 4, channel 2"),
            (x * 2 - 1, "expected values in 0..1"),
            (pixels(1, 16), r"expected float pixels of shape \(3, 32, 32\)"),
            (x.transpose(0, 2, 3, 1), "channels last"),
            (x[:, :2], r"found float32 of shape \(2, 32, 32\)"),
            (x[0, 0], r"found float32 of shape \(32, 32\)"),
            (x[None], "found float32 of shape"),
            (x.astype(np.int32), "found int32"),
            (x > 0.5, "found bool"),
            (x.astype(complex), "found complex128"),
            (np.zeros((0, 3, 32, 32), np.float32), "images: expected one or more, found none"),
            (np.zeros((1, 0, 5, 3), np.uint8), "expected 1..65535 pixels"),
            ([], "images: expected one or more, found none"),
            (None, "found NoneType"),
            (3, "found int"),
            ([None], "image 0: expected"),
            ("no-such-file.png", "no-such-file.png"),
            ("a\0b.png", "zero byte"),
            ("no-\udcff-such.png", "no-.*-such.png"),
            (b"no-such-file.png", "found bytes"),
            (np.array([["a"]]), "found <U1"),
        ]:
            with self.subTest(words), self.assertRaisesRegex(aha.InputError, words):
                e(bad)
        for target, words in [
            ([1], "a class index or 2 of them"),
            (9, "expected 0..4, found 9"),
            (-1, "expected 0..4, found -1"),
            ("bird", "bird"),
            (1.5, "found float"),
            (True, "found bool"),
            ([0.5, 1], "found float64"),
            (object(), "found object"),
        ]:
            with self.subTest(words), self.assertRaisesRegex(aha.InputError, words):
                e(x, target=target)
        for call, words in [
            (lambda: aha.Explainer("chefr", self.m), "did you mean 'chefer'"),
            (lambda: aha.Explainer("rise", self.m, mask=3), "mask"),
            (lambda: aha.Explainer("rise", self.m, masks=-1), "masks"),
            (lambda: aha.Explainer("layercam", self.m), "methods that fit"),
            (lambda: aha.Explainer("chefer", self.m, refine=3), "expected method aha"),
            (lambda: aha.load("cifar10-vit9"), "cifar10-vit8"),
            (lambda: aha.load(3), "found int"),
            (lambda: aha.load(len, size=-5), "size: expected 1..4096"),
            (lambda: aha.Explainer(None, self.m), "found NoneType"),
            (lambda: aha.load(TINY, gradient=len), "with a callable alone"),
            (lambda: aha.Session(threads=-1), "threads"),
            (lambda: aha.Session(precision="f16"), "bf16"),
        ]:
            with self.subTest(words), self.assertRaisesRegex(aha.InputError, words):
                call()
        self.assertTrue(issubclass(aha.InputError, ValueError) and issubclass(aha.InputError, aha.Error))


class Overlay(unittest.TestCase):
    def test_a_picture_is_an_array_a_png_and_a_file(self):
        x = pixels(3)
        picture = aha.overlay(x[0], x[0, 0])
        self.assertEqual((picture.pixels.dtype, picture.shape), (np.uint8, (32, 32, 3)))
        sheet = aha.overlay(x, x[:, 0], contours=True)
        self.assertEqual(sheet.shape, (32, 3 * 32 + 2 * 4, 3))
        with tempfile.TemporaryDirectory() as out:
            for one in (picture, sheet):
                path = os.path.join(out, "x.png")
                one.save(path)
                seen = aha._aha.Image.read(path)  # a PNG that the library reads
                self.assertIsNotNone(seen)
                with open(path, "rb") as file:
                    self.assertEqual(file.read(), one._repr_png_())
            self.assertEqual(os.listdir(out), ["x.png"])
            with self.assertRaises(aha.InputError):
                picture.save(os.path.join(out, "missing", "x.png"))
            with self.assertRaises(aha.InputError):
                picture.save(os.path.join(out, "x.what"))
        with self.assertRaisesRegex(aha.InputError, "one for each of 3 images, found 2"):
            aha.overlay(x, x[:2, 0])
        with self.assertRaisesRegex(aha.InputError, "finite"):
            aha.overlay(x[0], x[0, 0] * np.nan)
        with self.assertRaisesRegex(aha.InputError, "expected an array of shape"):
            aha.overlay(x[0], "map")

    @needs_pil
    def test_its_png_holds_its_pixels(self):
        import io

        from PIL import Image

        for n in (1, 8):
            picture = aha.overlay(None, pixels(n)[:, 0])
            read = np.asarray(Image.open(io.BytesIO(picture._repr_png_())))
            np.testing.assert_array_equal(read, picture.pixels)
        with tempfile.TemporaryDirectory() as out:
            picture.save(os.path.join(out, "x.jpg"))
            with Image.open(os.path.join(out, "x.jpg")) as read:
                self.assertEqual(read.format, "JPEG")


if __name__ == "__main__":
    unittest.main()
