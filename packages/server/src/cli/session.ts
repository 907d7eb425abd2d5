import type { Command } from "commander";
import type { Pawl } from "pawl";
import type { ExitCode } from "./exit.js";
import type { Output } from "./output.js";

/** What one run of a command works with. */
export interface CommandSession {
  readonly out: Output;
  /** Ctrl-C: what is under way stops where it can be taken up again */
  readonly signal: AbortSignal;
  /** The store or server that was named, opened at the first call and closed at the end. */
  pawl(): Promise<Pawl>;
  /** The same without opening it: where it would be, and how. */
  readonly target: StoreFlags;
  readonly openTarget: OpenTarget;
  /** Every command there is, for those who describe them. */
  program(): Promise<Command>;
}

/** What says where to go. */
export interface StoreFlags {
  readonly store?: string;
  readonly config?: string;
}

export interface OpenTargetOptions {
  /** whether to bring the schema up to date; operators' commands do not */
  readonly migrate?: boolean;
  readonly onWaiting?: (what: string) => void;
}

export type OpenTarget = (flags: StoreFlags, options?: OpenTargetOptions) => Promise<Pawl>;

/** Carries out a command; a number is its exit code. */
export type CommandRun<O> = (session: CommandSession, options: O, ...args: string[]) => Promise<ExitCode | undefined> | Promise<void>;

/** What `build` of a command's file gets: how to say what a subcommand does. */
export type Act = <O>(command: Command, run: CommandRun<O>) => Command;

/** The file of a command. */
export interface CommandModule {
  build(command: Command, act: Act): void;
}
