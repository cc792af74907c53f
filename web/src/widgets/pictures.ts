/** Widgets whose value is an array: a drawing, a picture, the camera, the microphone. */
import { create } from "../elements.js";
import { type Description, type Field, type MakeField, type Send } from "./fields.js";

/** Red, green and blue of a picture, row by row. */
function pixels(context: CanvasRenderingContext2D, width: number, height: number): ArrayBuffer {
  const { data } = context.getImageData(0, 0, width, height);
  const rgb = new Uint8Array(3 * width * height);
  for (let i = 0; i < width * height; i++) rgb.set(data.subarray(4 * i, 4 * i + 3), 3 * i);
  return rgb.buffer;
}

function sendPicture(send: Send, context: CanvasRenderingContext2D, width: number, height: number): void {
  const array = { dtype: "uint8", shape: [height, width, 3] };
  send({ event: { array }, buffers: [pixels(context, width, height)] });
}

function framed(label: string, ...children: HTMLElement[]): HTMLElement {
  return create("div", { className: "widget picture" }, create("span", { textContent: label }), ...children);
}

function context2d(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
  return canvas.getContext("2d", { willReadFrequently: true })!;
}

/** A field to draw on. Strokes are drawn large and read small, so that they have soft edges, as scanned digits do. */
const canvas: MakeField = (description, send) => {
  const { width, height, scale } = description as unknown as { width: number; height: number; scale: number };
  const large = create("canvas", { width: width * scale, height: height * scale, className: "drawing", tabIndex: 0 });
  large.setAttribute("role", "img");
  large.setAttribute("aria-label", `${description.label || "Field"} to draw on with a pointer`);
  const small = create("canvas", { width, height });
  const [ink, read] = [context2d(large), context2d(small)];
  const tell = (): void => {
    read.fillStyle = "black";
    read.fillRect(0, 0, width, height);
    read.drawImage(large, 0, 0, width, height);
    const { data } = read.getImageData(0, 0, width, height);
    const values = Float32Array.from({ length: width * height }, (_, i) => data[4 * i]! / 255);
    send({ event: { array: { dtype: "float32", shape: [height, width] } }, buffers: [values.buffer as ArrayBuffer] });
  };
  const wipe = (): void => {
    ink.fillStyle = "black";
    ink.fillRect(0, 0, large.width, large.height);
  };
  wipe();
  ink.lineCap = ink.lineJoin = "round";
  ink.strokeStyle = "white";
  ink.lineWidth = 2 * scale;
  let last: [number, number] | null = null;
  const at = (event: PointerEvent): [number, number] => {
    const box = large.getBoundingClientRect();
    return [
      ((event.clientX - box.left) * large.width) / box.width,
      ((event.clientY - box.top) * large.height) / box.height,
    ];
  };
  const stroke = (event: PointerEvent): void => {
    if (!last) return;
    const next = at(event);
    ink.beginPath();
    ink.moveTo(...last);
    ink.lineTo(...next);
    ink.stroke();
    last = next;
    tell();
  };
  large.addEventListener("pointerdown", (event) => {
    large.setPointerCapture(event.pointerId);
    last = at(event);
    stroke(event);
  });
  large.addEventListener("pointermove", stroke);
  large.addEventListener("pointerup", () => (last = null));
  large.addEventListener("pointercancel", () => (last = null));
  const clear = create("button", { type: "button", textContent: "Clear" });
  clear.addEventListener("click", () => {
    wipe();
    tell();
  });
  return { element: framed(description.label, large, clear) };
};

/** A picture that the reader chooses. */
const image: MakeField = (description, send) => {
  const input = create("input", { type: "file", accept: "image/*" });
  const shown = create("canvas", { width: 1, height: 1, hidden: true });
  const note = create("span", { className: "note" });
  const take = async (file: File): Promise<void> => {
    const bitmap = await createImageBitmap(file).catch(() => null);
    note.textContent = bitmap ? "" : `${file.name} is no picture that this browser can read.`;
    if (!bitmap) return;
    const width = Number(description["width"] ?? 0) || Math.min(bitmap.width, 1024);
    const height = Number(description["height"] ?? 0) || Math.round((bitmap.height * width) / bitmap.width);
    Object.assign(shown, { width, height, hidden: false });
    const context = context2d(shown);
    context.drawImage(bitmap, 0, 0, width, height);
    sendPicture(send, context, width, height);
  };
  input.addEventListener("change", () => {
    if (input.files?.[0]) void take(input.files[0]);
  });
  const element = framed(description.label, input, shown, note);
  element.addEventListener("dragover", (event) => event.preventDefault());
  element.addEventListener("drop", (event) => {
    const file = event.dataTransfer?.files[0];
    if (!file?.type.startsWith("image/")) return;
    event.preventDefault();
    event.stopPropagation();
    void take(file);
  });
  return { element };
};

/** A field that needs a permission: a button starts and ends it, and names what is missing. */
function started(
  description: Description,
  begin: (stopped: () => boolean) => Promise<() => void>,
  ...shown: HTMLElement[]
): Field {
  let end: (() => void) | null = null;
  let stopped = true;
  const start = create("button", { type: "button", textContent: "Start" });
  const note = create("span", { className: "note" });
  const stop = (): void => {
    stopped = true;
    end?.();
    end = null;
    start.textContent = "Start";
  };
  start.addEventListener("click", async () => {
    if (!stopped) return stop();
    stopped = false;
    start.textContent = "Stop";
    note.textContent = "";
    try {
      end = await begin(() => stopped);
      if (stopped) stop();
    } catch (error) {
      stop();
      note.textContent = `There is none to be had: ${(error as Error).message}`;
    }
  });
  return { element: framed(description.label, ...shown, start, note), dispose: stop };
}

const camera: MakeField = (description, send) => {
  const { width, height } = description as unknown as { width: number; height: number };
  const shown = create("canvas", { width, height });
  const context = context2d(shown);
  const begin = async (stopped: () => boolean): Promise<() => void> => {
    const stream = await navigator.mediaDevices.getUserMedia({ video: { width, height } });
    const video = create("video", { muted: true, playsInline: true, srcObject: stream });
    await video.play();
    const picture = (): void => {
      if (stopped()) return;
      context.drawImage(video, 0, 0, width, height);
      sendPicture(send, context, width, height);
      requestAnimationFrame(picture);
    };
    picture();
    return () => stream.getTracks().forEach((track) => track.stop());
  };
  return started(description, begin, shown);
};

const microphone: MakeField = (description, send) => {
  const { samples } = description as unknown as { samples: number };
  const size = 2 ** Math.ceil(Math.log2(Math.max(samples, 32)));
  const begin = async (stopped: () => boolean): Promise<() => void> => {
    const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    const audio = new AudioContext();
    const analyser = new AnalyserNode(audio, { fftSize: size });
    audio.createMediaStreamSource(stream).connect(analyser);
    const all = new Float32Array(size);
    const listen = (): void => {
      if (stopped()) return;
      analyser.getFloatTimeDomainData(all);
      const last = all.slice(size - samples);
      const array = { dtype: "float32", shape: [last.length] };
      send({ event: { array, rate: audio.sampleRate }, buffers: [last.buffer] });
      requestAnimationFrame(listen);
    };
    listen();
    return () => {
      stream.getTracks().forEach((track) => track.stop());
      void audio.close();
    };
  };
  return started(description, begin);
};

export const PICTURES: Record<string, MakeField> = { canvas, image, camera, microphone };
