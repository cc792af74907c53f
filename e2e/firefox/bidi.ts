/**
 * Firefox by WebDriver BiDi, the protocol that it speaks itself (https://w3c.github.io/webdriver-bidi): as much of it as
 * the smoke tests need. Playwright speaks it too, but asks for commands that the extended support release has not yet.
 */
import { spawn, type ChildProcess } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { WebSocket } from "ws";

type Json = Record<string, any>;

interface Waiting {
  resolve(result: Json): void;
  reject(error: Error): void;
}

const STARTS_WITHIN = 30_000; // ms
const ANSWERS_WITHIN = 60_000; // ms

export class Firefox {
  private readonly waiting = new Map<number, Waiting>();
  private last = 0;
  /** What pages write to the console, and errors that nobody caught. */
  readonly said: string[] = [];

  private constructor(
    private readonly process: ChildProcess,
    private readonly profile: string,
    private readonly socket: WebSocket,
  ) {
    socket.on("message", (data) => this.receive(JSON.parse(String(data)) as Json));
    socket.on("close", () => this.fail(new Error("Firefox closed the connection")));
  }

  static async launch(executable: string): Promise<Firefox> {
    const profile = fs.mkdtempSync(path.join(os.tmpdir(), "weft-firefox-"));
    const args = ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0", "about:blank"];
    const child = spawn(executable, args, { stdio: ["ignore", "ignore", "pipe"] });
    const address = await new Promise<string>((resolve, reject) => {
      let text = "";
      const timer = setTimeout(() => reject(new Error(`Firefox did not start: ${text}`)), STARTS_WITHIN);
      child.stderr.on("data", (chunk: Buffer) => {
        text += chunk.toString();
        const found = /WebDriver BiDi listening on (ws:\S+)/.exec(text);
        if (found) resolve((clearTimeout(timer), found[1]!));
      });
      child.once("exit", (code) => reject(new Error(`Firefox ended with ${code}: ${text}`)));
    });
    const socket = new WebSocket(`${address}/session`);
    await new Promise<void>((resolve, reject) => socket.once("open", () => resolve()).once("error", reject));
    const firefox = new Firefox(child, profile, socket);
    await firefox.send("session.new", { capabilities: {} });
    await firefox.send("session.subscribe", { events: ["log.entryAdded"] });
    return firefox;
  }

  private receive(message: Json): void {
    if (message["type"] === "event") {
      const { level, text } = message["params"] as Json;
      if (message["method"] === "log.entryAdded") this.said.push(`${level}: ${text}`);
      return;
    }
    const waiting = this.waiting.get(message["id"]);
    this.waiting.delete(message["id"]);
    if (message["type"] === "success") waiting?.resolve(message["result"]);
    else waiting?.reject(new Error(`${message["error"]}: ${message["message"]}`));
  }

  private fail(error: Error): void {
    for (const { reject } of this.waiting.values()) reject(error);
    this.waiting.clear();
  }

  async send(method: string, params: Json): Promise<Json> {
    const id = ++this.last;
    const answer = new Promise<Json>((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    const timer = setTimeout(() => {
      this.waiting.get(id)?.reject(new Error(`Firefox does not answer ${method}`));
      this.waiting.delete(id);
    }, ANSWERS_WITHIN);
    this.socket.send(JSON.stringify({ id, method, params }));
    return answer.finally(() => clearTimeout(timer));
  }

  async page(): Promise<FirefoxPage> {
    const { context } = await this.send("browsingContext.create", { type: "tab" });
    await this.send("browsingContext.setViewport", { context, viewport: { width: 1280, height: 800 } });
    return new FirefoxPage(this, context);
  }

  async close(): Promise<void> {
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.socket.removeAllListeners("close");
    await this.send("browser.close", {});
    await ended;
    fs.rmSync(this.profile, { recursive: true, force: true });
  }
}

export class FirefoxPage {
  constructor(
    private readonly firefox: Firefox,
    private readonly context: string,
  ) {}

  async goto(url: string): Promise<void> {
    await this.firefox.send("browsingContext.navigate", { context: this.context, url, wait: "complete" });
  }

  /** Calls a function in the page with an argument; both sides are JSON. */
  async evaluate<Argument, Result>(run: (argument: Argument) => Result, argument: Argument): Promise<Awaited<Result>> {
    const answer = await this.firefox.send("script.callFunction", {
      functionDeclaration: `async (text) => JSON.stringify((await (${String(run)})(JSON.parse(text))) ?? null)`,
      awaitPromise: true,
      arguments: [{ type: "string", value: JSON.stringify(argument ?? null) }],
      target: { context: this.context },
    });
    if (answer["type"] === "exception") throw new Error(answer["exceptionDetails"].text);
    return JSON.parse(answer["result"].value);
  }

  /** The text of the first element that matches; null if none does. */
  text(selector: string): Promise<string | null> {
    return this.evaluate((given) => document.querySelector(given)?.textContent ?? null, selector);
  }

  private async element(selector: string): Promise<Json> {
    const answer = await this.firefox.send("browsingContext.locateNodes", {
      context: this.context,
      locator: { type: "css", value: selector },
      maxNodeCount: 1,
    });
    const [node] = answer["nodes"] as Json[];
    if (!node) throw new Error(`the page has no ${selector}`);
    return { sharedId: node["sharedId"] };
  }

  async click(selector: string): Promise<void> {
    const origin = { type: "element", element: await this.element(selector) };
    const actions = [
      { type: "pointerMove", x: 0, y: 0, origin },
      { type: "pointerDown", button: 0 },
      { type: "pointerUp", button: 0 },
    ];
    await this.perform([{ type: "pointer", id: "mouse", actions }]);
  }

  async point(selector: string): Promise<void> {
    const origin = { type: "element", element: await this.element(selector) };
    await this.perform([{ type: "pointer", id: "mouse", actions: [{ type: "pointerMove", x: 0, y: 0, origin }] }]);
  }

  /** Types text. Keys without a letter are characters of their own in WebDriver. */
  async type(text: string): Promise<void> {
    const actions = [...text].flatMap((value) => [
      { type: "keyDown", value },
      { type: "keyUp", value },
    ]);
    await this.perform([{ type: "key", id: "keyboard", actions }]);
  }

  /** A key while another is held. */
  async chord(held: string, key: string): Promise<void> {
    const actions = [
      { type: "keyDown", value: held },
      { type: "keyDown", value: key },
      { type: "keyUp", value: key },
      { type: "keyUp", value: held },
    ];
    await this.perform([{ type: "key", id: "keyboard", actions }]);
  }

  private async perform(actions: Json[]): Promise<void> {
    await this.firefox.send("input.performActions", { context: this.context, actions });
  }

  /** Chooses a file in an input. */
  async choose(selector: string, file: string): Promise<void> {
    const element = await this.element(selector);
    await this.firefox.send("input.setFiles", { context: this.context, element, files: [file] });
  }

  async screenshot(file: string): Promise<void> {
    const { data } = await this.firefox.send("browsingContext.captureScreenshot", { context: this.context });
    fs.writeFileSync(file, Buffer.from(data, "base64"));
  }

  async close(): Promise<void> {
    await this.firefox.send("browsingContext.close", { context: this.context });
  }
}
