/** Sends what a reader does with a widget, one event at a time: of those that come meanwhile, only the last counts. */

export type Tell = (run: number, widget: string, event: unknown, buffers?: ArrayBuffer[]) => Promise<void>;

export interface Event {
  event: unknown;
  buffers?: ArrayBuffer[];
}

export class Sender {
  private busy = false;
  private waiting: Event | null = null;

  constructor(private readonly tell: (event: Event) => Promise<void>) {}

  /** Whether an event is on its way, and one that is sent now would wait. */
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
