// A page: a worker owns a memory and runs compiled programs in it; the page itself sends it work and shows results.
import { readFileSync } from "node:fs";
import { isMainThread, parentPort, Worker } from "node:worker_threads";

const memory = new WebAssembly.Memory({ initial: 16, maximum: 65536 });
const room = (bytes) => Math.ceil(bytes / 64) * 64;
const spare = new Map(); // size -> addresses that were given back
let end = 64; // what lies from here on has never been used

function alloc(bytes) {
  const found = spare.get(room(bytes))?.pop();
  if (found) return found;
  end += room(bytes);
  while (end > memory.buffer.byteLength) memory.grow(1);
  return end - room(bytes);
}

function free(address, bytes) {
  spare.set(room(bytes), [...(spare.get(room(bytes)) ?? []), address]);
}

function write(bytes) {
  const address = alloc(bytes.length);
  new Uint8Array(memory.buffer, address).set(bytes); // a new view each time: growth of the memory ends the old ones
  return address;
}

// A .weft file (docs/artifact.md) as a function from the addresses of its inputs to those of its outputs.
function load(file) {
  const [a, b, c] = new Uint32Array(file.slice(40, 52).buffer); // the lengths of the three parts
  const { inputs, outputs, scratch } = JSON.parse(new TextDecoder().decode(file.slice(52, 52 + a)));
  const module = new WebAssembly.Module(file.slice(52 + a, 52 + a + b));
  const { main } = new WebAssembly.Instance(module, { weft: { memory, call() {}, share() {} } }).exports;
  const constants = write(file.slice(52 + a + b, 52 + a + b + c));
  return (addresses) => {
    const [results, work] = [outputs.map(({ bytes }) => alloc(bytes)), alloc(scratch)];
    const table = write(new Uint8Array(new Uint32Array([...addresses, ...results, work, constants]).buffer));
    if (main(table)) throw new Error("the program says that it failed");
    free(work, scratch);
    free(table, 4 * (inputs.length + results.length + 2));
    return results.map((address, k) => ({ address, bytes: outputs[k].bytes }));
  };
}

if (isMainThread) {
  const [file, inputs] = [readFileSync(process.argv[2]), JSON.parse(process.argv[3])];
  const worker = new Worker(new URL(import.meta.url));
  worker.on("message", (results) => console.log(JSON.stringify(results)));
  worker.postMessage({ file, inputs });
} else {
  parentPort.once("message", ({ file, inputs }) => {
    const addresses = inputs.map((numbers) => write(new Uint8Array(new Float32Array(numbers).buffer)));
    const read = ({ address, bytes }) => [...new Float32Array(memory.buffer, address, bytes / 4)];
    parentPort.postMessage(load(file)(addresses).map(read));
  });
}
