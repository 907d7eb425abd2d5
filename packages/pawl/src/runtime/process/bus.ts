import type { EventName, Events } from "../../core/observe/event.js";

type BusListener<E extends EventName> = (event: Events[E]) => void;

/** One event bus per open store. Emitting to nobody costs one look-up; building an event for nobody is avoided by `hasListeners`. */
export class Bus {
  readonly #listeners = new Map<EventName, Set<BusListener<EventName>>>();

  on<E extends EventName>(name: E, listener: BusListener<E>): () => void {
    let listeners = this.#listeners.get(name);
    if (listeners === undefined) {
      listeners = new Set();
      this.#listeners.set(name, listeners);
    }
    const added = listener as BusListener<EventName>;
    listeners.add(added);
    return () => {
      listeners.delete(added);
    };
  }

  hasListeners(name: EventName): boolean {
    const listeners = this.#listeners.get(name);
    return listeners !== undefined && listeners.size > 0;
  }

  emit<E extends EventName>(name: E, event: Events[E]): void {
    const listeners = this.#listeners.get(name);
    if (listeners === undefined) return;
    for (const listener of listeners) {
      try {
        listener(event);
      } catch {
        // A subscriber's fault is not the engine's: it must not stop the work it watches.
      }
    }
  }
}
