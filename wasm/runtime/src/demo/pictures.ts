/** Inputs that are pictures: drawn by hand, dropped as a file, taken by the camera. */
import type { TypedArray } from "../../../src/weft_wasm/page/weft.js";
import { button, context2d, dropped, make } from "./dom.js";
import { arrayOf, frameOf, isWhole, type Slot } from "./tree.js";

interface Field {
  element: HTMLElement;
  value(): TypedArray;
}

/** The pixels of a canvas as the program takes them; 0 to 255 become the slot's range. */
function pixelsOf(slot: Slot, canvas: HTMLCanvasElement): TypedArray {
  const { width, height, channels, first } = frameOf(slot.spec)!;
  const { data } = context2d(canvas).getImageData(0, 0, width, height);
  const whole = isWhole(slot.spec);
  const [low, high] = slot.range ?? (whole ? [0, 255] : [0, 1]);
  const numbers = new Array<number>(width * height * channels);
  for (let at = 0; at < width * height; at++) {
    const [r = 0, g = 0, b = 0, a = 0] = data.subarray(4 * at, 4 * at + 4);
    const parts = channels === 1 ? [0.299 * r + 0.587 * g + 0.114 * b] : [r, g, b, a];
    for (let c = 0; c < channels; c++) {
      const value = low + (parts[c]! / 255) * (high - low);
      numbers[first ? c * width * height + at : at * channels + c] = whole ? Math.round(value) : value;
    }
  }
  return arrayOf(slot, numbers);
}

/** Draws a picture over all of a canvas, cut to its proportions. */
function cover(canvas: HTMLCanvasElement, source: CanvasImageSource, width: number, height: number): void {
  const scale = Math.max(canvas.width / width, canvas.height / height);
  const [w, h] = [width * scale, height * scale];
  context2d(canvas).drawImage(source, (canvas.width - w) / 2, (canvas.height - h) / 2, w, h);
}

async function show(file: File, canvas: HTMLCanvasElement, note: HTMLElement, changed: () => void): Promise<void> {
  try {
    const bitmap = await createImageBitmap(file);
    cover(canvas, bitmap, bitmap.width, bitmap.height);
    note.textContent = `${file.name}, ${bitmap.width} × ${bitmap.height}`;
  } catch {
    note.textContent = `${file.name} is no picture that this browser can read.`;
    return;
  }
  changed();
}

/** Draws on a canvas with the pointer. */
function usePen(canvas: HTMLCanvasElement, width: number, changed: () => void): void {
  const ink = context2d(canvas);
  ink.lineCap = ink.lineJoin = "round";
  ink.strokeStyle = "white";
  ink.lineWidth = width;
  let last: [number, number] | null = null;
  const stroke = (event: PointerEvent): void => {
    if (!last) return;
    const box = canvas.getBoundingClientRect();
    const next: [number, number] = [
      ((event.clientX - box.left) * canvas.width) / box.width,
      ((event.clientY - box.top) * canvas.height) / box.height,
    ];
    ink.beginPath();
    ink.moveTo(...(Number.isNaN(last[0]) ? next : last));
    ink.lineTo(...next);
    ink.stroke();
    last = next;
    changed();
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    last = [NaN, NaN];
    stroke(event);
  });
  canvas.addEventListener("pointermove", stroke);
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => (last = null));
}

/** A field to draw on, white on black, as scanned digits are. Strokes are drawn large, and read small: soft edges. */
export function drawing(slot: Slot, changed: () => void): Field {
  const { width, height } = frameOf(slot.spec)!;
  const scale = Math.max(1, Math.floor(256 / Math.max(width, height)));
  const large = make("canvas", { width: width * scale, height: height * scale, className: "drawing" });
  large.setAttribute("role", "img");
  large.ariaLabel = `${slot.path}: draw here with a pointer`;
  const small = make("canvas", { width, height });
  const wipe = (): void => {
    const ink = context2d(large);
    ink.fillStyle = "black";
    ink.fillRect(0, 0, large.width, large.height);
  };
  wipe();
  usePen(large, Math.max(1.2, width / 11) * scale, changed);
  const clear = button("Clear", () => {
    wipe();
    changed();
  });
  const value = (): TypedArray => {
    const read = context2d(small);
    read.imageSmoothingQuality = "high";
    read.drawImage(large, 0, 0, width, height);
    return pixelsOf(slot, small);
  };
  const note = make("p", { className: "note", textContent: "Draw here, or drop a picture" });
  const element = make("div", { className: "drop" }, large, make("div", { className: "row" }, clear, note));
  dropped(element, (file) => void show(file, large, note, changed));
  return { element, value };
}

/** A picture that is dropped, chosen, or taken by the camera. */
export function image(slot: Slot, changed: () => void): Field {
  const { width, height } = frameOf(slot.spec)!;
  const canvas = make("canvas", { width, height, className: "picture" });
  canvas.setAttribute("role", "img");
  canvas.ariaLabel = `${slot.path}: the picture`;
  const ink = context2d(canvas);
  const gradient = ink.createLinearGradient(0, 0, width, height);
  gradient.addColorStop(0, "#3c50bd");
  gradient.addColorStop(1, "#e8956a");
  ink.fillStyle = gradient;
  ink.fillRect(0, 0, width, height);
  const note = make("p", { className: "note", textContent: "Drop a picture here" });
  const file = make("input", { type: "file", accept: "image/*", hidden: true });
  file.addEventListener("change", () => {
    if (file.files?.[0]) void show(file.files[0], canvas, note, changed);
  });
  const choose = button("Choose…", () => file.click());
  const camera = new Camera(canvas, note, changed);
  const actions = make("div", { className: "row" }, choose, camera.button, file, note);
  const element = make("div", { className: "drop" }, canvas, actions);
  dropped(element, (each) => void show(each, canvas, note, changed));
  return { element, value: () => pixelsOf(slot, canvas) };
}

class Camera {
  readonly button = button("Camera", () => void this.toggle());
  private stream: MediaStream | null = null;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly note: HTMLElement,
    private readonly changed: () => void,
  ) {}

  private async toggle(): Promise<void> {
    if (this.stream) return this.stop();
    try {
      this.stream = await navigator.mediaDevices.getUserMedia({ video: true });
    } catch (error) {
      this.note.textContent = `There is no camera to be had: ${(error as Error).message}`;
      return;
    }
    this.button.textContent = "Stop";
    const video = make("video", { muted: true, playsInline: true, srcObject: this.stream });
    await video.play();
    const draw = (): void => {
      if (!this.stream) return;
      cover(this.canvas, video, video.videoWidth, video.videoHeight);
      this.changed();
      requestAnimationFrame(draw);
    };
    draw();
  }

  private stop(): void {
    this.stream?.getTracks().forEach((track) => track.stop());
    this.stream = null;
    this.button.textContent = "Camera";
  }
}
