import { connect } from "@weft/runtime/host";
import { onConnect, say } from "./connection.js";

const [start, heat, go, stop, text, speed] = ["start", "heat", "go", "stop", "text", "speed"].map((id) =>
  document.getElementById(id),
);
const AHEAD = 8; // letters under way: the host draws the next ones while the last travel
const MOST = 5000;

const { letters, units } = await (await fetch("program/letters.json")).json();
let following = null;
let writing = false;

onConnect(async (options) => {
  const host = await connect(options.url, { token: options.token, name: "writer" });
  following = await host.load(new URL("program/following.weft", location.href));
  say(`connected: ${host.devices[0].kind}`);
  go.disabled = false;
});

async function write() {
  writing = true;
  [go.disabled, stop.disabled] = [true, false];
  text.textContent = start.value;
  const known = [...start.value.toLowerCase()].map((letter) => letters.indexOf(letter)).filter((i) => i >= 0);
  try {
    let [state] = await following.put({ hidden: new Float32Array(units), key: seed() }, known[0] ?? 0, 1);
    let letter = known[0] ?? 0;
    for (const next of [...known.slice(1), null]) {
      [state, letter] = await following.onDevice(state, letter, heat.valueAsNumber); // reads what was given
      if (next !== null) letter = next;
    }
    const began = performance.now();
    const drawn = [letter.read()];
    for (let count = 1; writing && count <= MOST; count++) {
      [state, letter] = await following.onDevice(state, letter, heat.valueAsNumber);
      drawn.push(letter.read());
      if (drawn.length < AHEAD) continue;
      text.textContent += letters[await drawn.shift()];
      speed.textContent = `${((1000 * count) / (performance.now() - began)).toFixed(0)} letters a second`;
    }
    for (const value of await Promise.all(drawn)) text.textContent += letters[value];
  } catch (error) {
    say(error.message);
  }
  writing = false;
  [go.disabled, stop.disabled] = [false, true];
}

const seed = () => crypto.getRandomValues(new Uint32Array(2));

go.addEventListener("click", () => void write());
stop.addEventListener("click", () => (writing = false));
