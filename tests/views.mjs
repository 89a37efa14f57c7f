// Runs the pages' formulas under Node: lines of JSON of questions on standard input, of answers on standard output.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { runInThisContext } from "node:vm";

globalThis.document = { addEventListener() {} };
for (const file of process.argv.slice(2)) runInThisContext(readFileSync(file, "utf8"), file);

const { formulas, bill, typed, merging } = SoftmaxLab;
const does = {
  bill: ({ data, kernel, rows, cols, size }) => bill(data, data.kernels.find((k) => k.name === kernel), rows, cols, size),
  evaluate: ({ tree, symbols }) => formulas.evaluate(tree, (symbol) => symbols[symbol]),
  symbol: ({ symbol, threads, rows, cols }) => formulas.symbols({ threads, block: 128 }, rows, cols, 4)(symbol),
  write: ({ function: name, args }) => formulas[name](...args),
  meet: ({ look, ...choice }) => merging.told(choice, SoftmaxLab.art(look)),
  masked: ({ text, most }) => merging.masked(text, most),
  typed: ({ text, unit }) => typed(text, unit),
};
const answer = ({ what, ...rest }) => {
  try {
    return { is: does[what](rest) };
  } catch (error) {
    return { error: error.message };
  }
};
for await (const line of createInterface({ input: process.stdin })) {
  const { shared, asked } = JSON.parse(line);
  process.stdout.write(`${JSON.stringify(asked.map((each) => answer({ ...shared, ...each })))}\n`);
}
