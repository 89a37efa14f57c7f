// Runs launches of the page module under Node: JSON of them on standard input, JSON of what they did on standard output.
import { readFileSync } from "node:fs";
import { runInThisContext } from "node:vm";

const [live, kernels] = process.argv.slice(2);
globalThis.SoftmaxLab = { kernels: (mark, packed) => (globalThis.packed = packed) };
for (const file of [live, kernels]) runInThisContext(readFileSync(file, "utf8"), file);

const floats = (base64) => {
  const bytes = Buffer.from(base64, "base64");
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
};
const plain = (key, value) =>
  value instanceof Float32Array || value instanceof Float64Array
    ? Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64")
    : typeof value === "number" && !Number.isFinite(value) ? String(value) : value;

const unpacked = await SoftmaxLab.unpack(packed), machine = SoftmaxLab.machine(unpacked);
const does = {
  launch: ({ index, grid, block, args, ...how }) =>
    machine.launch(index, [grid, 1, 1], [block, 1, 1], args.map((a) => (typeof a === "string" ? floats(a) : a)), how),
  softmax: ({ kernel, x, rows, cols, ...how }) =>
    SoftmaxLab.softmaxRun(machine, unpacked.info.kernels.find((k) => k.name === kernel), floats(x), rows, cols, how),
  derive: ({ kernel, x, rows, cols }) => {
    const found = unpacked.info.kernels.find((k) => k.name === kernel);
    return SoftmaxLab.derive(found, floats(x), rows, cols, found.block);
  },
  judge: ({ y, x, rows, cols }) => SoftmaxLab.judge(floats(y), floats(x), rows, cols),
};
const answers = JSON.parse(readFileSync(0, "utf8")).map(({ what, ...rest }) => {
  try {
    return does[what](rest);
  } catch (error) {
    return { error: error.message };
  }
});
process.stdout.write(JSON.stringify(answers, plain));
