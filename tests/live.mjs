// Runs launches of the page module under Node: lines of JSON of them on standard input, of what they did on standard output.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { runInThisContext } from "node:vm";

const [folder, kernels] = process.argv.slice(2);
globalThis.SoftmaxLab = { kernels: (mark, packed) => (globalThis.packed = packed) };
const files = ["page.js", "formulas.js", "live_core.js", "live_art.js", "live_inputs.js"].map((name) => `${folder}/${name}`);
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
  launch: ({ index, grid, threads, shared, args, ...how }) =>
    machine.launch(index, { grid, threads, shared }, args.map((a) => (typeof a === "string" ? floats(a) : a)), how),
  run: ({ kernel, arrays, rows, cols, ...how }) => SoftmaxLab.run(machine, kernelOf(kernel), arrays.map(floats), rows, cols, how),
  planted: ({ of, ...how }) => SoftmaxLab.runPlanted(machine, of, how),
  derive: ({ kernel, arrays, rows, cols }) => {
    const k = kernelOf(kernel), { counts, symbols } = SoftmaxLab.formulas;
    return counts(k.phases, symbols(k, rows, cols, 4, SoftmaxLab.fromData(k, floats(arrays[0]), rows, cols)));
  },
  judge: ({ family, y, arrays, rows, cols, terms }) => SoftmaxLab.judge(family, floats(y), arrays.map(floats), rows, cols, info.roundings, terms),
  families: () => ({ answered: SoftmaxLab.families, given: Object.keys(SoftmaxLab.given) }),
  named: ({ family, rows, cols }) => Object.fromEntries(Object.keys(SoftmaxLab.given[family].named).map((name) => [name, SoftmaxLab.made(family, name, rows, cols)])),
  fromRow: ({ family, row, vector, rows }) => SoftmaxLab.fromRow(info.families[family], row, vector, rows),
  typed: ({ text }) => SoftmaxLab.written(SoftmaxLab.typed(text)),
  squares: ({ y, kinds }) => art.squares(y, kinds),
  wires: ({ sources, strong }) => art.wires(sources, 46, 132, new Set(strong)),
  registers: ({ y, lines, kinds }) => art.registers(y, lines, kinds),
  sector: ({ used }) => art.sectorBox(8, 30, new Set(used)),
  words: ({ x }) => Array.from(floats(x), (v) => [SoftmaxLab.art.fixed(v), SoftmaxLab.art.brief(v)]),
  lanes: ({ lanes }) => SoftmaxLab.art.laneList(lanes),
  draw: ({ step }) => [art.picture(step), art.spoken(step)],
};
const answer = ({ what, ...rest }) => {
  try {
    return does[what](rest);
  } catch (error) {
    return { error: error.message };
  }
};
for await (const line of createInterface({ input: process.stdin }))
  process.stdout.write(`${JSON.stringify(JSON.parse(line).map(answer), plain)}\n`);
