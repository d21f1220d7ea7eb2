// What can be computed from a map without the server: its order, its colors, images with pixels removed.

// The color map "ember" of aha/image/colors.cpp: lightness rises evenly in Oklab.
function ember(t) {
  const lightness = 0.08 + 0.89 * t;
  const hue = ((285 + 180 * t) * Math.PI) / 180;
  const linear = (chroma) => {
    const a = chroma * Math.cos(hue), b = chroma * Math.sin(hue);
    const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
    const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
    return [4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
            -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
            -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s];
  };
  let chroma = 0.09 + 0.13 * Math.sin(Math.PI * t);
  let color = linear(chroma);
  for (; color.some((x) => x < 0 || x > 1) && chroma > 0; chroma -= 0.001) color = linear(chroma);
  return color.map((x) => Math.round(255 * Math.min(1, Math.max(0, x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055))));
}

export const colors = Array.from({ length: 256 }, (_, i) => ember(i / 255));

// How many pixels come before each one: descending values, ties by index, as the server orders them.
export function ranksOf(values) {
  const order = new Uint32Array(values.length).map((_, i) => i);
  order.sort((a, b) => values[b] - values[a] || a - b);
  const ranks = new Uint32Array(values.length);
  order.forEach((pixel, rank) => { ranks[pixel] = rank; });
  return ranks;
}

// A map with what is needed to draw it. Levels in 0..1 as aha/image/heatmap.h has them: the lowest and highest
// percent of the pixels share the end levels.
export function prepared(map) {
  const sorted = Float32Array.from(map.values).sort(), last = sorted.length - 1;
  let low = sorted[Math.floor(0.01 * last)], high = sorted[Math.ceil(0.99 * last)];
  if (low === high) [low, high] = [sorted[0], sorted[last]];
  const levels = Float32Array.from(map.values, (value) => (high > low ? Math.min(1, Math.max(0, (value - low) / (high - low))) : 0.5));
  return { ...map, levels, ranks: ranksOf(map.values) };
}

// As the curves of `aha explain` count them: what is removed is rounded down, in either mode.
const portion = (percent, pixels) => Math.floor((percent * pixels) / 100);
export const shareToPixels = (percent, pixels, mode) =>
  mode === "insert" ? pixels - portion(100 - percent, pixels) : portion(percent, pixels);

// Whether the pixel is replaced by the reference: hidden by hand, or by its rank.
const removed = (rank, k, mode) => (mode === "delete" ? rank < k : rank >= k);

export function scrubbedPixels({ pixels, reference, ranks, k, mode, painted }) {
  const out = new ImageData(new Uint8ClampedArray(pixels.data), pixels.width, pixels.height);
  for (let i = 0; i < pixels.width * pixels.height; ++i)
    if ((painted && painted[i]) || (ranks && removed(ranks[i], k, mode)))
      for (let c = 0; c < 3; ++c) out.data[4 * i + c] = reference.data[4 * i + c];
  return out;
}

// What the brush hid, as text: runs in base 36; empty for nothing, or more than an address should hold.
const kLongestPaint = 6000;
export function textOfPaint(painted) {
  if (!painted || !painted.some(Boolean)) return "";
  const text = keepRuns({ painted }).map((run) => run.toString(36)).join(".");
  return text.length > kLongestPaint ? "" : text;
}
export function paintOfText(text, pixels) {
  const runs = text === "" ? [] : text.split(".").map((run) => parseInt(run, 36));
  if (runs.reduce((sum, run) => sum + run, 0) !== pixels) return null;  // of an image of another size, or no paint
  const painted = new Uint8Array(pixels);
  let at = 0;
  runs.forEach((run, i) => { painted.fill(i % 2, at, at += run); });
  return painted;
}

// Lengths of runs, visible and hidden in turn: what /api/score takes as `keep`.
export function keepRuns({ ranks, k, mode, painted }) {
  const runs = [];
  let visible = true, length = 0;
  for (let i = 0; i < painted.length; ++i) {
    const shown = !painted[i] && !(ranks && removed(ranks[i], k, mode));
    if (shown !== visible) {
      runs.push(length);
      visible = shown;
      length = 0;
    }
    ++length;
  }
  runs.push(length);
  return runs;
}

// The map over the image. `view`: overlay, heat, rank, contour or image. In an overlay the colors are as opaque as the
// level is high, over a gray image, so that its own colors are not read as the map's.
export function mapPixels(pixels, map, view, opacity) {
  const out = new ImageData(new Uint8ClampedArray(pixels.data), pixels.width, pixels.height);
  if (!map || view === "image" || view === "contour") return out;
  const { data } = out, count = map.values.length;
  for (let i = 0; i < count; ++i) {
    const level = view === "rank" ? 1 - map.ranks[i] / Math.max(1, count - 1) : map.levels[i];
    const color = colors[Math.round(255 * level)];
    const t = Math.min(1, Math.max(0, (level - 0.2) / 0.7));
    const share = view === "overlay" ? opacity * t * t * (3 - 2 * t) : 1;
    const gray = 0.299 * data[4 * i] + 0.587 * data[4 * i + 1] + 0.114 * data[4 * i + 2];
    for (let c = 0; c < 3; ++c) {
      const below = share * gray + (1 - share) * data[4 * i + c];
      data[4 * i + c] = share * color[c] + (1 - share) * below;
    }
  }
  return out;
}

// Edges between pixels of which one is among the first `share`: [x0, y0, x1, y1] in pixels.
export function contour(map, share) {
  const { width, height, ranks } = map, k = share * ranks.length, lines = [];
  const inside = (x, y) => ranks[y * width + x] < k;
  for (let y = 0; y < height; ++y)
    for (let x = 0; x < width; ++x) {
      if (x + 1 < width && inside(x, y) !== inside(x + 1, y)) lines.push([x + 1, y, x + 1, y + 1]);
      if (y + 1 < height && inside(x, y) !== inside(x, y + 1)) lines.push([x, y + 1, x + 1, y + 1]);
    }
  return lines;
}
