// Runs launches of the page module under Node: JSON of them on standard input, JSON of what they did on standard output.
import { readFileSync } from "node:fs";
import { runInThisContext } from "node:vm";

const [folder, kernels] = process.argv.slice(2);
globalThis.SoftmaxLab = { kernels: (mark, packed) => (globalThis.packed = packed) };
const files = ["live_core.js", "live_art.js", "live_inputs.js"].map((name) => `${folder}/${name}`);
for (const file of [...files, kernels]) runInThisContext(readFileSync(file, "utf8"), file);

const floats = (base64) => {
  const bytes = Buffer.from(base64, "base64");
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
};
const plain = (key, value) =>
  ArrayBuffer.isView(value) ? Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64")
    : typeof value === "number" && !Number.isFinite(value) ? String(value) : value;

const unpacked = await SoftmaxLab.unpack(packed), { info } = unpacked, machine = SoftmaxLab.machine(unpacked);
const art = info.look && SoftmaxLab.art(info.look);
const kernelOf = (name) => info.kernels.find((k) => k.name === name);
const does = {
  launch: ({ index, grid, block, args, ...how }) =>
    machine.launch(index, [grid, 1, 1], [block, 1, 1], args.map((a) => (typeof a === "string" ? floats(a) : a)), how),
  run: ({ kernel, x, rows, cols, ...how }) => SoftmaxLab.run(machine, kernelOf(kernel), floats(x), rows, cols, how),
  planted: ({ of, ...how }) => SoftmaxLab.runPlanted(machine, of, how),
  derive: ({ kernel, x, rows, cols, block }) => SoftmaxLab.derive(kernelOf(kernel), floats(x), rows, cols, block ?? kernelOf(kernel).block),
  judge: ({ y, x, rows, cols, terms }) => SoftmaxLab.judge(floats(y), floats(x), rows, cols, info.roundings, terms),
  scores: ({ rows, cols }) => Object.fromEntries(SoftmaxLab.scores.names.map((name) => [name, SoftmaxLab.scores(name, rows, cols)])),
  typed: ({ text }) => SoftmaxLab.written(SoftmaxLab.typed(text)),
  squares: ({ y, kinds }) => art.squares(y, kinds),
  wires: ({ sources, strong }) => art.wires(sources, 46, 132, new Set(strong)),
  registers: ({ y, lines, kinds }) => art.registers(y, lines, kinds),
  sector: ({ used }) => art.sectorBox(8, 30, new Set(used)),
  words: ({ x }) => Array.from(floats(x), (v) => [SoftmaxLab.art.fixed(v), SoftmaxLab.art.brief(v)]),
  lanes: ({ lanes }) => SoftmaxLab.art.laneList(lanes),
  draw: ({ step }) => [art.picture(step), art.spoken(step)],
};
const answers = JSON.parse(readFileSync(0, "utf8")).map(({ what, ...rest }) => {
  try {
    return does[what](rest);
  } catch (error) {
    return { error: error.message };
  }
});
process.stdout.write(JSON.stringify(answers, plain));
