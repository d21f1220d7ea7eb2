// Every bundled explainer that can be exported, for several photos and opsets: its maps in onnxruntime beside those of
// `aha explain`.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { deflateSync, inflateSync } from "node:zlib";

const ort = createRequire(import.meta.url)(process.env.ORT);
const aha = process.argv[2];
const run = (...words) => execFileSync(aha, words, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
let failures = 0;
const check = (truth, what) => {
  console.log(`${truth ? "ok  " : "FAIL"} ${what}`);
  failures += !truth;
};

// (H, W, 3) bytes of a PNG of 8-bit RGB without interlacing: what `aha data export` writes.
function pixelsOfPng(file) {
  const bytes = readFileSync(file);
  const parts = [];
  let width = 0, height = 0;
  for (let at = 8; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at), kind = bytes.toString("latin1", at + 4, at + 8);
    const data = bytes.subarray(at + 8, at + 8 + length);
    if (kind === "IHDR") {
      width = data.readUInt32BE(0);
      height = data.readUInt32BE(4);
      if (data[8] !== 8 || data[9] !== 2 || data[12] !== 0) throw new Error(`${file}: expected 8-bit RGB`);
    }
    if (kind === "IDAT") parts.push(data);
    at += 12 + length;
  }
  const lines = inflateSync(Buffer.concat(parts)), stride = 3 * width, out = new Uint8Array(stride * height);
  for (let y = 0; y < height; ++y)
    for (let x = 0; x < stride; ++x) {
      const left = x < 3 ? 0 : out[y * stride + x - 3], up = y === 0 ? 0 : out[(y - 1) * stride + x];
      const corner = x < 3 || y === 0 ? 0 : out[(y - 1) * stride + x - 3];
      const [dl, du, dc] = [left, up, corner].map((v) => Math.abs(left + up - corner - v));
      const paeth = dl <= du && dl <= dc ? left : du <= dc ? up : corner;
      const guess = [0, left, up, (left + up) >> 1, paeth][lines[y * (stride + 1)]];
      out[y * stride + x] = lines[y * (stride + 1) + 1 + x] + guess;
    }
  return { width, height, out };
}

// The reverse of it.
function writePng(file, width, height, rgb) {
  const chunk = (kind, data) => {
    const body = Buffer.concat([Buffer.from(kind, "latin1"), data]), whole = Buffer.alloc(body.length + 8);
    let crc = 0xffffffff;
    for (const byte of body) {
      crc ^= byte;
      for (let bit = 0; bit < 8; ++bit) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
    }
    whole.writeUInt32BE(data.length, 0);
    body.copy(whole, 4);
    whole.writeUInt32BE(~crc >>> 0, body.length + 4);
    return whole;
  };
  const head = Buffer.alloc(13), lines = Buffer.alloc(height * (3 * width + 1));
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2, 0, 0, 0], 8);
  for (let y = 0; y < height; ++y) lines.set(rgb.subarray(3 * width * y, 3 * width * (y + 1)), y * (3 * width + 1) + 1);
  const begin = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  writeFileSync(file, Buffer.concat([begin, chunk("IHDR", head), chunk("IDAT", deflateSync(lines)), chunk("IEND", Buffer.alloc(0))]));
}

// float32, C order: what `aha explain` writes.
function floatsOfNpy(file) {
  const bytes = readFileSync(file), start = 10 + bytes.readUInt16LE(8);
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset + start, bytes.byteOffset + bytes.length));
}

// The PNG files of a folder, as large as the resize leaves them alone, and their middle as the network gets it.
function imagesOf(folder, side) {
  const files = readdirSync(folder).filter((name) => name.endsWith(".png")).sort();
  const pixels = new Float32Array(files.length * 3 * side * side);
  files.forEach((file, n) => {
    const { width, height, out } = pixelsOfPng(`${folder}/${file}`), left = (width - side) / 2, top = (height - side) / 2;
    for (let c = 0; c < 3; ++c)
      for (let y = 0; y < side; ++y)
        for (let x = 0; x < side; ++x)
          pixels[((n * 3 + c) * side + y) * side + x] = out[3 * ((y + top) * width + x + left) + c] / 255;
  });
  return { folder, files, side, pixels };
}
run("data", "export", "cifar10:sample", "--limit", "4", "--out", "images");
const small = imagesOf("images", 32);
mkdirSync("photos");
for (const [n, wave] of [[0, 9], [1, 23]].entries()) {
  const side = 248, rgb = new Uint8Array(3 * side * side);
  rgb.forEach((_, i) => (rgb[i] = 128 + 120 * Math.sin((i % (3 * side)) / wave[1] + Math.floor(i / (3 * side)) / (7 + wave[0]))));
  writePng(`photos/${n}.png`, side, side, rgb);
}
const large = imagesOf("photos", 224);
// Weights that are not bundled, where they are on this machine.
const weights = `${process.env.AHA_SHARED}/data/weights/vit_tiny_patch16_224_in1k.safetensors`;

const models = JSON.parse(run("models", "--json"));
const names = models.bundled.filter((model) => model.kind === "explainer").map((model) => model.name);
check(names.length >= 5, `there are bundled explainers: ${names.join(", ")}`);
let exported = 0;
for (const name of names) {
  let target = JSON.parse(run("inspect", "--json", name)).target.name, shown = small;
  if (target.startsWith("vit_ti_16:")) {
    if (!existsSync(weights)) {
      console.log(`${name} is left out: no ${weights}`);
      continue;
    }
    target = `vit_ti_16:${weights}`;
    shown = large;
  }
  const { folder, files, side, pixels } = shown, N = files.length;
  for (const opset of ["13", "17"]) {
    try {
      run("export", name, "--target", target, "--opset", opset, "--out", "explainer.onnx");
    } catch (error) {
      check(error.stderr.includes("needs no backward pass") && error.stderr.trim().split("\n").length === 1, `${name} is refused: ${error.stderr.trim()}`);
      break;
    }
    const session = await ort.InferenceSession.create("explainer.onnx");
    for (const wanted of ["predicted", "5"]) {
      run("explain", "--quiet", "--target", target, "--explainer", name, "--class", wanted, "--no-score", "--no-sheet", "--overwrite", "--out", "maps", folder);
      const index = wanted === "5" ? 5n : -1n;
      const answer = await session.run({
        image: new ort.Tensor("float32", pixels, [N, 3, side, side]),
        class: new ort.Tensor("int64", new BigInt64Array(N).fill(index), [N]),
      });
      let off = 0, largest = 0;
      files.forEach((file, n) => {
        floatsOfNpy(`maps/${file.replace(".png", ".map.npy")}`).forEach((value, p) => {
          off = Math.max(off, Math.abs(value - answer.map.data[n * side * side + p]));
          largest = Math.max(largest, Math.abs(value));
        });
      });
      check(off <= 1e-4 * largest, `${name} opset ${opset} ${wanted}: off by ${(off / largest).toExponential(1)} of the largest value`);
    }
    exported += 1;
  }
}
check(exported >= 8, `${exported} files ran in onnxruntime`);
process.exit(failures ? 1 : 0);
