import { connect, place } from "@weft/runtime/host";
import { onConnect, say } from "./connection.js";
import * as model from "./program/classify.js";

const pad = document.getElementById("pad");
const context = pad.getContext("2d", { willReadFrequently: true });
const bars = Array.from({ length: 10 }, (_, digit) => {
  const meter = Object.assign(document.createElement("meter"), { max: 1, ariaLabel: `How likely it is ${digit}` });
  const share = document.createElement("span");
  document.getElementById("bars").append(String(digit), meter, share);
  return { meter, share };
});

let classify = await place(model); // in the page, until there is a host
let busy = false;
let changed = false;

/** Shows the scores of what is drawn now; what is drawn meanwhile is next. */
async function show() {
  changed = true;
  if (busy) return;
  busy = true;
  while (changed) {
    changed = false;
    const { data } = context.getImageData(0, 0, 8, 8);
    const picture = Float32Array.from({ length: 64 }, (_, i) => data[4 * i] / 255);
    const scores = await classify(picture);
    bars.forEach(({ meter, share }, digit) => {
      meter.value = scores[digit];
      share.textContent = `${(100 * scores[digit]).toFixed(0)} %`;
    });
    say(`computed by ${classify.where}: ${classify.reason}`);
  }
  busy = false;
}

function draw(event) {
  if (!event.buttons) return;
  const box = pad.getBoundingClientRect();
  const [x, y] = [(8 * (event.clientX - box.left)) / box.width, (8 * (event.clientY - box.top)) / box.height];
  const brush = context.createRadialGradient(x, y, 0.2, x, y, 1.1);
  brush.addColorStop(0, "#fff");
  brush.addColorStop(1, "#fff0");
  context.fillStyle = brush;
  context.fillRect(0, 0, 8, 8);
  void show();
}
pad.addEventListener("pointerdown", draw);
pad.addEventListener("pointermove", draw);
document.getElementById("clear").addEventListener("click", () => {
  context.clearRect(0, 0, 8, 8);
  void show();
});

onConnect(async (options) => {
  const host = await connect(options.url, { token: options.token, name: "digits" });
  classify = await place(model, { device: host.devices[0] });
  say(`connected to ${host.devices[0].platform}`);
  void show();
});
