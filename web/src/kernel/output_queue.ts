/**
 * Text on its way from Python to the page, in few messages: a program that prints without end must not fill the page's
 * queue. What comes now and then is sent at once, because a program that computes gives no time to send it later.
 */

/** Messages that may be sent at once, and how fast their number grows again. */
const BURST = 200;
const MS_PER_MESSAGE = 8;
/** Characters after which held text is sent whatever the rate. */
const MOST_HELD = 1 << 18;

export class OutputQueue<Stream extends string> {
  private held: { stream: Stream; text: string } | null = null;
  private budget = BURST;
  private at = 0;

  constructor(
    private readonly send: (stream: Stream, text: string) => void,
    private readonly now: () => number = () => performance.now(),
  ) {}

  write(stream: Stream, text: string): void {
    if (this.held && this.held.stream !== stream) this.flush();
    if (this.held) this.held.text += text;
    else this.held = { stream, text };
    const now = this.now();
    this.budget = Math.min(BURST, this.budget + (now - this.at) / MS_PER_MESSAGE);
    this.at = now;
    if (this.budget < 1 && this.held.text.length < MOST_HELD) return;
    this.budget = Math.max(0, this.budget - 1);
    this.flush();
  }

  /** Sends the held text. */
  flush(): void {
    const held = this.held;
    this.held = null;
    if (held) this.send(held.stream, held.text);
  }
}
