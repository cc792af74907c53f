import { connect, resume } from "@weft/runtime/host";
import { onConnect, remembered, say } from "./connection.js";

const [go, stop, rate, count] = ["go", "stop", "rate", "count"].map((id) => document.getElementById(id));
const AHEAD = 4; // calls under way: the host computes while losses travel

let host = null;
let job = null; // the programs, the state on the host, and the losses so far
let running = false;

async function load(options) {
  host = await connect(options.url, { token: options.token, name: "training" });
  const from = (name, more) => host.load(new URL(`program/${name}.weft`, location.href), more);
  const [begin, train, picture] = await Promise.all([from("begin"), from("train"), from("picture")]);
  job = { train, picture, state: await begin.onDevice(0), losses: [] };
  ready("connected");
}

function ready(text) {
  say(`${text}: ${host.devices[0].kind}`);
  go.disabled = false;
  document.querySelector("form button").disabled = true;
  void show();
}

/** Trains until it is stopped. The state stays on the host; losses are read behind the calls. */
async function run() {
  running = true;
  [go.disabled, stop.disabled] = [true, false];
  const pending = [];
  let calls = 0;
  try {
    while (running) {
      const [state, loss] = await job.train.onDevice(job.state, rate.valueAsNumber);
      job.state = state;
      pending.push(loss.read().then((value) => job.losses.push(value)));
      if (pending.length >= AHEAD) await pending.shift();
      if (++calls % 5 === 0) await Promise.all([show(), keep()]);
    }
    await Promise.all(pending);
  } catch (error) {
    say(error.message);
  }
  running = false;
  [go.disabled, stop.disabled] = [host.failure !== null, true];
  await show();
  await keep();
}

/** Where the job stands, for this page after a reload. */
async function keep() {
  if (host.failure !== null) return;
  const { train, picture, state, losses } = job;
  const now = { train, picture, state, losses: [...losses] };
  sessionStorage.setItem("job", await host.keep(now));
  job.kept = now; // an array that nobody refers to is freed on the host
}

async function show() {
  const { state } = job;
  count.textContent = `${100 * job.losses.length} steps`;
  curve(job.losses);
  if (host.failure !== null) return;
  const grey = await job.picture(state);
  const pixels = new ImageData(64, 64);
  grey.forEach((value, i) => pixels.data.set([value, 90, 255 - value, 255], 4 * i));
  document.getElementById("picture").getContext("2d").putImageData(pixels, 0, 0);
}

function curve(losses) {
  const canvas = document.getElementById("curve");
  const context = canvas.getContext("2d");
  const { width, height } = canvas;
  const top = Math.max(0.7, ...losses);
  context.clearRect(0, 0, width, height);
  context.strokeStyle = getComputedStyle(document.querySelector("a")).color;
  context.lineWidth = 2;
  context.beginPath();
  losses.forEach((loss, i) =>
    context.lineTo((width * i) / Math.max(losses.length - 1, 1), height - 4 - ((height - 8) * loss) / top),
  );
  context.stroke();
  const last = losses.at(-1);
  canvas.ariaLabel = last === undefined ? "No loss yet" : `The loss over the steps, now ${last.toFixed(4)}`;
}

go.addEventListener("click", () => void run());
stop.addEventListener("click", () => (running = false));
onConnect(load);

const kept = sessionStorage.getItem("job");
if (kept) {
  try {
    const { url, token } = remembered();
    ({ host, tree: job } = await resume(url, { token, kept, name: "training" }));
    ready("taken up again");
  } catch (error) {
    sessionStorage.removeItem("job");
    say(`the last training is gone: ${error.message}`);
  }
}
