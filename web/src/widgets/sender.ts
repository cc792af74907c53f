/**
 * Sends the reader's actions on a widget, one event at a time; of the events that arrive meanwhile, only the last
 * is sent.
 */

export type Tell = (run: number, widget: string, event: unknown, buffers?: ArrayBuffer[]) => Promise<void>;

export interface Event {
  event: unknown;
  buffers?: ArrayBuffer[];
}

export class Sender {
  private busy = false;
  private waiting: Event | null = null;

  constructor(private readonly tell: (event: Event) => Promise<void>) {}

  /** Whether an event is on its way, so that another one would wait. */
  get full(): boolean {
    return this.busy;
  }

  send(event: Event): void {
    if (this.busy) {
      this.waiting = event;
      return;
    }
    this.busy = true;
    void this.tell(event).then(() => {
      this.busy = false;
      const next = this.waiting;
      this.waiting = null;
      if (next) this.send(next);
    });
  }
}
