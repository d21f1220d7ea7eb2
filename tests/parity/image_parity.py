"""Our images against Pillow's and torchvision's, byte for byte.

usage: image_parity.py IMAGE_PROBE

Writes images of every kind into a temporary folder, has the probe read, resize and crop them, and compares each result with
ImageOps.exif_transpose(Image.open(f)).convert("RGB"), Image.resize, torchvision's Resize and CenterCrop. Exit 77 where Pillow or
numpy is missing.
"""
import io
import os
import struct
import subprocess
import sys
import tempfile
import warnings
import zlib

try:
    import numpy as np
    from PIL import Image, ImageOps
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)
try:
    from torchvision.transforms import functional as torchvision
except ImportError:
    torchvision = None

warnings.simplefilter("ignore")
random = np.random.default_rng(7)
FILTERS = {"nearest": Image.NEAREST, "bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC}


class Probe:
    def __init__(self, program, folder):
        self.folder = folder
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.compared = 0
        self.failures = []

    def ask(self, verb, path, *words):
        out = os.path.join(self.folder, "out.raw")
        self.process.stdin.write("\t".join([verb, path, out, *map(str, words)]) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer:
            raise SystemExit(f"the probe died on {verb} {path} {words}")
        return answer, out

    def compare(self, what, expected, verb, path, *words):
        """expected: a Pillow image in mode RGB, or None where a refusal is expected."""
        self.compared += 1
        answer, out = self.ask(verb, path, *words)
        if expected is None:
            if not answer.startswith("error "):
                self.failures.append(f"{what}: expected a refusal, found {answer}")
            return
        if answer != f"{expected.width} {expected.height}":
            self.failures.append(f"{what}: expected {expected.size}, found {answer}")
            return
        ours = np.fromfile(out, np.uint8).astype(int)
        theirs = np.asarray(expected).ravel().astype(int)
        if not np.array_equal(ours, theirs):
            apart = np.abs(ours - theirs)
            self.failures.append(f"{what}: {(apart > 0).sum()} of {apart.size} bytes differ, by up to {apart.max()}")


def photo(width, height, channels=3):
    """Smooth shapes with noise on top: neither flat nor pure noise."""
    y, x = np.mgrid[0:height, 0:width].astype(float)
    planes = [127 + 90 * np.sin(x / (3 + 4 * c) + c) * np.cos(y / (5 + 3 * c)) + random.normal(0, 20, (height, width))
              for c in range(channels)]
    pixels = np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8)
    return pixels if channels > 1 else pixels[..., 0]


def noise(width, height):
    return random.integers(0, 256, (height, width, 3), dtype=np.uint8)


def saved(folder, name, image, **options):
    path = os.path.join(folder, name)
    image.save(path, **options)
    return path


def as_rgb(path):
    with Image.open(path) as image:
        return ImageOps.exif_transpose(image).convert("RGB")


# ---- PNG kinds that Pillow does not write


def png_chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png_rows(pixels, depth):
    """pixels (H, W, samples) of `depth` bits, as filter-0 rows."""
    rows = []
    for row in pixels:
        flat = row.reshape(-1)
        if depth == 16:
            packed = flat.astype(">u2").tobytes()
        elif depth == 8:
            packed = flat.astype(np.uint8).tobytes()
        else:
            bits = ((flat[:, None] >> np.arange(depth - 1, -1, -1)) & 1).astype(np.uint8)
            packed = np.packbits(bits.reshape(-1)).tobytes()
        rows.append(b"\0" + packed)
    return b"".join(rows)


def hand_png(pixels, depth, color_type, interlaced=False, extra=(), after=()):
    height, width = pixels.shape[:2]
    if interlaced:
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
        parts = [pixels[y0::dy, x0::dx] for x0, y0, dx, dy in passes]
        data = b"".join(png_rows(part, depth) for part in parts if part.size)
    else:
        data = png_rows(pixels, depth)
    header = struct.pack(">IIBBBBB", width, height, depth, color_type, 0, 0, int(interlaced))
    compressed = zlib.compress(data)
    half = len(compressed) // 2
    chunks = [(b"IHDR", header), *extra, (b"IDAT", compressed[:half]), (b"IDAT", compressed[half:]), *after, (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(png_chunk(*chunk) for chunk in chunks)


def write(folder, name, content):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(content)
    return path


# ---- the cases


def exif_block(orientation, order="<", kind=3):
    mark = b"II" if order == "<" else b"MM"
    value = struct.pack(order + ("H" if kind == 3 else "I"), orientation).ljust(4, b"\0")
    return b"Exif\0\0" + mark + struct.pack(order + "HIHHHI", 42, 8, 1, 0x0112, kind, 1) + value + b"\0\0\0\0"


def check_jpegs(probe, folder):
    def case(name, image, **options):
        path = saved(folder, name + ".jpg", image, **options)
        probe.compare(f"JPEG {name}", as_rgb(path), "decode", path)

    for width, height in [(1, 1), (7, 5), (16, 16), (33, 47), (250, 187)]:
        rgb = Image.fromarray(photo(width, height))
        for sampling in (0, 1, 2):
            for progressive in (False, True):
                case(f"rgb-{width}x{height}-{sampling}-{progressive}", rgb, quality=85, subsampling=sampling, progressive=progressive)
        case(f"gray-{width}x{height}", Image.fromarray(photo(width, height, 1)), quality=80)
        case(f"cmyk-{width}x{height}", Image.fromarray(photo(width, height, 4), "CMYK"), quality=90)
    for quality in (1, 10, 50, 100):
        case(f"quality-{quality}", Image.fromarray(noise(61, 43)), quality=quality)

    # YCCK: a CMYK file whose Adobe marker says so; the decoder then converts YCC to CMY.
    cmyk = saved(folder, "plain-cmyk.jpg", Image.fromarray(photo(40, 30, 4), "CMYK"), quality=90)
    content = open(cmyk, "rb").read()
    at = content.index(b"Adobe")
    ycck = write(folder, "ycck.jpg", content[:at + 11] + b"\x02" + content[at + 12:])
    probe.compare("JPEG ycck", as_rgb(ycck), "decode", ycck)
    bare = write(folder, "cmyk-without-adobe.jpg", content[:at - 4] + content[at + 12:])
    probe.compare("JPEG cmyk without Adobe marker", as_rgb(bare), "decode", bare)

    for orientation in range(0, 11):
        for order in "<>":
            for kind in (3, 4):
                case(f"orientation-{orientation}-{kind}{'le' if order == '<' else 'be'}", Image.fromarray(photo(23, 14)),
                     exif=exif_block(orientation, order, kind))


def check_pngs(probe, folder):
    def case(name, path):
        probe.compare(f"PNG {name}", as_rgb(path), "decode", path)

    rgb = Image.fromarray(photo(37, 22))
    alpha = Image.fromarray(random.integers(0, 256, (22, 37), dtype=np.uint8))
    rgba, gray = rgb.copy(), rgb.convert("L")
    rgba.putalpha(alpha)
    gray_alpha = gray.copy()
    gray_alpha.putalpha(alpha)
    palette = rgb.quantize(31)
    kinds = {"1": rgb.convert("1"), "L": gray, "LA": gray_alpha, "P": palette, "RGB": rgb, "RGBA": rgba,
             "P-bilevel": rgb.quantize(2), "P-4": rgb.quantize(4), "P-16": rgb.quantize(16), "P-256": rgb.quantize(256)}
    for name, image in kinds.items():
        case(name, saved(folder, f"kind-{name}.png", image))
    case("P with one transparent entry", saved(folder, "p-trns.png", palette, transparency=3))
    case("P with alpha entries", saved(folder, "p-alphas.png", palette, transparency=bytes(range(31))))
    case("L with a transparent level", saved(folder, "l-trns.png", gray, transparency=100))
    case("RGB with a transparent color", saved(folder, "rgb-trns.png", rgb, transparency=(1, 2, 3)))
    deep = random.integers(0, 65536, (22, 37), dtype=np.uint16)
    # Pillow's conversion of 16-bit gray saturates; ours keeps the high byte.
    high = np.repeat((deep >> 8).astype(np.uint8)[:, :, None], 3, 2)
    probe.compare("PNG I;16", Image.fromarray(high), "decode", saved(folder, "i16.png", Image.fromarray(deep)))
    for orientation in range(1, 9):
        case(f"orientation {orientation}", saved(folder, f"o{orientation}.png", rgb, exif=exif_block(orientation)))

    samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
    depths = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
    for color_type in samples:
        for depth in depths[color_type]:
            for width, height in [(1, 1), (3, 2), (5, 9), (37, 22)]:
                pixels = random.integers(0, 2 ** depth, (height, width, samples[color_type]))
                entries = random.integers(0, 256, 3 * 2 ** depth, dtype=np.uint8).tobytes() if color_type == 3 else b""
                extra = [(b"PLTE", entries)] if entries else []
                for interlaced in (False, True):
                    name = f"type {color_type} depth {depth} {width}x{height} interlaced {interlaced}"
                    path = write(folder, "hand.png", hand_png(pixels, depth, color_type, interlaced, extra))
                    if (color_type, depth) == (0, 16):
                        high = np.repeat((pixels >> 8).astype(np.uint8), 3, 2)
                        probe.compare(f"PNG {name}", Image.fromarray(high), "decode", path)
                    else:
                        case(name, path)
    pixels = random.integers(0, 256, (14, 23, 3))
    late = write(folder, "late-exif.png", hand_png(pixels, 8, 2, after=[(b"eXIf", exif_block(6)[6:])]))
    case("orientation after the pixels", late)


def check_webps(probe, folder):
    def case(name, image, **options):
        path = saved(folder, name + ".webp", image, **options)
        probe.compare(f"WebP {name}", as_rgb(path), "decode", path)

    for width, height in [(1, 1), (17, 9), (64, 64), (121, 83)]:
        rgb = Image.fromarray(photo(width, height))
        rgba = Image.fromarray(photo(width, height, 4), "RGBA")
        for lossless in (False, True):
            case(f"rgb-{width}x{height}-{lossless}", rgb, lossless=lossless, quality=80)
            case(f"rgba-{width}x{height}-{lossless}", rgba, lossless=lossless, quality=80)
            case(f"exact-{width}x{height}-{lossless}", rgba, lossless=lossless, exact=True)
        frames = [Image.fromarray(photo(width, height, 4), "RGBA") for _ in range(3)]
        case(f"animated-{width}x{height}", frames[0], save_all=True, append_images=frames[1:], duration=50)
    for orientation in range(1, 9):
        case(f"orientation-{orientation}", Image.fromarray(photo(23, 14)), exif=exif_block(orientation))


def check_others(probe, folder):
    """GIF, BMP and TIFF. AVIF has no counterpart in this Pillow."""
    def case(kind, name, image, **options):
        path = saved(folder, f"{name}.{kind.lower()}", image, format=kind, **options)
        probe.compare(f"{kind} {name}", as_rgb(path), "decode", path)

    for width, height in [(1, 1), (3, 2), (17, 9), (121, 83)]:
        rgb = Image.fromarray(photo(width, height))
        size = f"{width}x{height}"
        for colors in (2, 5, 200):
            palette = rgb.quantize(colors)
            case("GIF", f"{size}-{colors}", palette)
            case("GIF", f"{size}-{colors}-interlaced", palette, interlace=1)
            case("GIF", f"{size}-{colors}-transparent", palette, transparency=1)
            case("BMP", f"{size}-p{colors}", palette)
            case("TIFF", f"{size}-p{colors}", palette)
        frames = [Image.fromarray(photo(width, height)) for _ in range(3)]
        case("GIF", f"{size}-animated", frames[0], save_all=True, append_images=frames[1:])
        for mode in ("1", "L", "RGB"):
            case("BMP", f"{size}-{mode}", rgb.convert(mode))
            for compression in ("raw", "tiff_lzw", "tiff_deflate", "packbits"):
                case("TIFF", f"{size}-{mode}-{compression}", rgb.convert(mode), compression=compression)


def check_names_and_refusals(probe, folder):
    image = Image.fromarray(photo(30, 20))
    for kind in ("JPEG", "PNG", "WEBP"):
        for ending in ("jpg", "png", "webp", "txt", ""):
            buffer = io.BytesIO()
            image.save(buffer, kind)
            path = write(folder, f"named.{ending}", buffer.getvalue())
            probe.compare(f"{kind} named .{ending}", as_rgb(path), "decode", path)
            for share in range(0, 16):
                cut = write(folder, "cut", buffer.getvalue()[:len(buffer.getvalue()) * share // 16])
                probe.compare(f"{kind} cut at {share}/16", None, "decode", cut)
    for kind in ("GIF", "BMP", "TIFF"):
        buffer = io.BytesIO()
        image.save(buffer, kind)
        for share in range(0, 14):
            cut = write(folder, "cut", buffer.getvalue()[:len(buffer.getvalue()) * share // 16])
            probe.compare(f"{kind} cut at {share}/16", None, "decode", cut)
    probe.compare("ICO", None, "decode", saved(folder, "other.ico", image, format="ICO"))


def check_resizing(probe, folder):
    sizes = [(1, 1), (2, 3), (7, 7), (32, 32), (50, 31), (224, 224), (256, 341), (341, 256), (500, 375), (640, 3), (3, 640)]
    for width, height in sizes:
        for make in (photo, noise):
            image = Image.fromarray(make(width, height))
            path = saved(folder, "source.png", image)
            targets = {(1, 1), (width, height), (width, 17), (19, height), (2 * width, 3 * height), (224, 224), (32, 32),
                       (max(1, width // 3), max(1, height // 2)), (width + 1, max(1, height - 1)), (133, 97)}
            for target in sorted(targets):
                for name, code in FILTERS.items():
                    probe.compare(f"{make.__name__} {width}x{height} -> {target} {name}", image.resize(target, code), "resize",
                                  path, *target, name)
    for _ in range(120):
        width, height, out_width, out_height = (int(n) for n in random.integers(1, 400, 4))
        image = Image.fromarray(noise(width, height))
        path = saved(folder, "source.png", image)
        for name, code in FILTERS.items():
            probe.compare(f"noise {width}x{height} -> {out_width}x{out_height} {name}", image.resize((out_width, out_height), code),
                          "resize", path, out_width, out_height, name)


def check_geometry(probe, folder):
    if torchvision is None:
        print("torchvision is missing: its geometry is not compared")
        return
    modes = {name: torchvision.InterpolationMode(name) for name in ("bilinear", "bicubic")}
    sizes = [(500, 375), (333, 500), (501, 375), (256, 400), (100, 80), (80, 100), (224, 224), (309, 224), (31, 57), (57, 32)]
    sizes += [tuple(int(n) for n in random.integers(20, 500, 2)) for _ in range(30)]
    for size in sizes:
        image = Image.fromarray(photo(*size))
        path = saved(folder, "source.png", image)
        for short in (224, 230, 236, 242, 248, 256):
            for name, mode in modes.items():
                expected = torchvision.resize(image, short, mode)
                probe.compare(f"{size} short side {short} {name}", expected, "short-side", path, short, name)
        for crop in (1, 31, 32, 56, 57, 101, 224, 225):
            probe.compare(f"{size} crop {crop}", torchvision.center_crop(image, crop), "crop", path, crop)


def check_arrays(probe, folder):
    path, back = os.path.join(folder, "array.npy"), os.path.join(folder, "out.raw")
    for shape in [(), (0,), (5,), (3, 4), (2, 3, 5, 7), (1, 0, 4)]:
        array = random.normal(0, 50, shape).astype("<f4")
        for version in ((1, 0), (2, 0), (3, 0)):
            with open(path, "wb") as file:
                np.lib.format.write_array(file, np.asarray(array), version)
            probe.compared += 1
            answer, _ = probe.ask("npy", path)
            if answer.startswith("error"):
                probe.failures.append(f"npy {shape} {version}: {answer}")
                continue
            ours = np.load(back)
            if ours.shape != shape or ours.dtype != np.float32 or not np.array_equal(ours, array):
                probe.failures.append(f"npy {shape} {version}: other values came back")


def main():
    with tempfile.TemporaryDirectory() as folder:
        probe = Probe(sys.argv[1], folder)
        for check in (check_jpegs, check_pngs, check_webps, check_others, check_names_and_refusals, check_resizing, check_geometry, check_arrays):
            before, failed = probe.compared, len(probe.failures)
            check(probe, folder)
            print(f"{check.__name__[6:].replace('_', ' ')}: {probe.compared - before} compared, "
                  f"{len(probe.failures) - failed} differ", flush=True)
    for failure in probe.failures[:50]:
        print(failure)
    return 1 if probe.failures else 0


sys.exit(main())
