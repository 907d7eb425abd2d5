/**
 * One process of one Node system: `node main.ts FILE PLACE AIM`. It obeys JSON lines on descriptor 3, a socket to the
 * harness, and answers there: `{"id":1,"command":"work","argument":{…}}` → `{"id":1,"answer":{…}}` or `{"id":1,"error":"…"}`.
 * `{"done":5}` needs no answer; `{"progress":7}` is said unasked. When the socket ends, so does the process.
 */
import { Socket } from "node:net";
import { createInterface } from "node:readline";
import type { Aim, StoreLocation, SystemModule } from "../contract/system.ts";
import { obeying } from "./commands.ts";

const PROGRESS_MS = 50;

interface Message {
  readonly id?: number;
  readonly command?: string;
  readonly argument?: unknown;
  readonly done?: number;
}

const [file, location, aim] = process.argv.slice(2) as [string, string, Aim];
const socket = new Socket({ fd: 3 });
const say = (message: object) => void socket.write(`${JSON.stringify(message)}\n`);

const { connect } = (await import(new URL(`../systems/${file}`, import.meta.url).href)) as SystemModule;
const { commands, progress, done } = obeying(await connect(JSON.parse(location) as StoreLocation, aim));

let said = 0;
setInterval(() => {
  const now = progress();
  if (now === said) return;
  said = now;
  say({ progress: now });
}, PROGRESS_MS).unref();

async function obey({ id, command, argument }: Message): Promise<void> {
  try {
    const verb = commands[command as keyof typeof commands] as (argument: unknown) => Promise<unknown>;
    const answer = await verb(argument);
    say({ id, answer: answer ?? null });
  } catch (error) {
    say({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
}

createInterface({ input: socket })
  .on("line", (line) => {
    const message = JSON.parse(line) as Message;
    if (message.done === undefined) void obey(message);
    else done(message.done);
  })
  .on("close", () => process.exit());
say({ ready: true });
