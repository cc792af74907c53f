import { load } from "@weft/runtime/exported";
import { files, signature } from "./program/julia.js";

const [real, imaginary] = ["real", "imaginary"].map((id) => document.getElementById(id));
const context = document.querySelector("canvas").getContext("2d");
const time = document.getElementById("time");

try {
  const julia = await load(signature, files);
  const draw = () => {
    const started = performance.now();
    const pixels = julia(real.valueAsNumber, imaginary.valueAsNumber); // a Uint8Array of 320 × 320 × 4
    const ms = performance.now() - started;
    context.putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer), 320, 320), 0, 0);
    time.textContent = `${ms.toFixed(1)} ms for a picture of 320 × 320 points`;
  };
  for (const input of [real, imaginary])
    input.addEventListener("input", () => {
      input.nextElementSibling.textContent = input.value;
      draw();
    });
  draw();
} catch (error) {
  time.textContent = String(error);
}
