/** The address and token of a host, and which backend runs the document. */
import type { Backend, ReadyMessage } from "../kernel/protocol.js";
import { byId } from "./dom.js";
import { settings } from "./settings.js";

export class BackendChoice {
  private readonly url = byId<HTMLInputElement>("host-url");
  private readonly token = byId<HTMLInputElement>("host-token");
  private readonly form = byId<HTMLFormElement>("host");

  /**
   * @param run runs the document.
   * @param changed is called when the reader has chosen another backend.
   */
  constructor(run: () => void, changed: (backend: Backend) => void) {
    // `make play` prints an address whose fragment holds the host it started. A token is a secret: it leaves the
    // address at once and lives as long as the tab.
    const given = new URLSearchParams(location.hash.slice(1));
    if (given.has("host")) {
      settings.set("host", given.get("host")!);
      settings.set("token", given.get("token") ?? "");
      history.replaceState(null, "", location.pathname + location.search);
    }
    this.url.value = settings.get("host") ?? "ws://127.0.0.1:8765";
    this.token.value = settings.get("token") ?? "";
    this.url.addEventListener("change", () => settings.set("host", this.url.value));
    this.token.addEventListener("change", () => settings.set("token", this.token.value));
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      run();
    });
    byId("backends").addEventListener("change", () => {
      this.shown();
      settings.set("backend", this.backend);
      changed(this.backend);
    });
  }

  get backend(): Backend {
    return document.querySelector<HTMLInputElement>("input[name=backend]:checked")!.value as Backend;
  }

  set backend(backend: Backend) {
    const input = document.querySelector<HTMLInputElement>(`input[value=${backend}]`)!;
    // Whether there is an adapter is known once Python is ready.
    input.checked = true;
    this.shown();
  }

  get host(): { url: string; token: string } {
    return { url: this.url.value.trim(), token: this.token.value.trim() };
  }

  ready({ hasGpu }: ReadyMessage): void {
    const gpu = document.querySelector<HTMLInputElement>("input[value=webgpu]")!;
    gpu.disabled = !hasGpu;
    gpu.parentElement!.title = hasGpu
      ? "The GPU of this machine, through WebGPU"
      : "This browser offers no WebGPU adapter";
    if (!hasGpu && gpu.checked) this.backend = "wasm";
  }

  private shown(): void {
    this.form.hidden = this.backend !== "remote";
  }
}
