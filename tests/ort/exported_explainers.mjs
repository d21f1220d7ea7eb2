// Every bundled explainer that can be exported, for several photos and opsets: its maps in onnxruntime beside those of
// `aha explain`.
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { inflateSync } from "node:zlib";

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

// float32, C order: what `aha explain` writes.
function floatsOfNpy(file) {
  const bytes = readFileSync(file), start = 10 + bytes.readUInt16LE(8);
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset + start, bytes.byteOffset + bytes.length));
}

run("data", "export", "cifar10:sample", "--limit", "4", "--out", "images");
const files = readdirSync("images").filter((name) => name.endsWith(".png")).sort();
const side = 32, N = files.length;
const image = new Float32Array(N * 3 * side * side);
files.forEach((file, n) => {
  const { width, height, out } = pixelsOfPng(`images/${file}`);
  if (width !== side || height !== side) throw new Error(`${file}: expected ${side} x ${side}`);
  for (let c = 0; c < 3; ++c)
    for (let p = 0; p < side * side; ++p) image[(n * 3 + c) * side * side + p] = out[3 * p + c] / 255;
});

const models = JSON.parse(run("models", "--json"));
const names = models.bundled.filter((model) => model.kind === "explainer").map((model) => model.name);
check(names.length >= 5, `there are bundled explainers: ${names.join(", ")}`);
let exported = 0;
for (const name of names) {
  const target = JSON.parse(run("inspect", "--json", name)).target.name;
  for (const opset of ["13", "17"]) {
    try {
      run("export", name, "--target", target, "--opset", opset, "--out", "explainer.onnx");
    } catch (error) {
      check(error.stderr.includes("needs no backward pass") && error.stderr.trim().split("\n").length === 1, `${name} is refused: ${error.stderr.trim()}`);
      break;
    }
    const session = await ort.InferenceSession.create("explainer.onnx");
    for (const wanted of ["predicted", "dog"]) {
      run("explain", "--quiet", "--target", target, "--explainer", name, "--class", wanted, "--no-score", "--no-sheet", "--overwrite", "--out", "maps", "images");
      const index = wanted === "dog" ? 5n : -1n;
      const answer = await session.run({
        image: new ort.Tensor("float32", image, [N, 3, side, side]),
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
