import { spawn } from "node:child_process";
import { once } from "node:events";

const script = `
while read -r pid place; do pids="$pids $pid"; places="$places $place"; done
for pid in $pids; do kill -QUIT $pid 2>/dev/null; done
rm -rf "$1" $places || { sleep 1; rm -rf "$1" $places; }
`;

/**
 * Ends the servers and removes their folders when this process is gone, however it went: a shell, in a session of its
 * own, reads pids from a pipe that only we hold. When the pipe ends, so has the run. Ctrl-C does not reach it.
 */
export function watchdog(folder: string): { watch(pid: number, place: string): void; done(): Promise<void> } {
  const shell = spawn("sh", ["-c", script, "watchdog", folder], { detached: true, stdio: ["pipe", "ignore", "ignore"] });
  shell.unref();
  return {
    watch: (pid, place) => void shell.stdin.write(`${pid} ${place}\n`),
    async done() {
      shell.ref(); // or Node, seeing nothing else to do, would end before it has
      shell.stdin.end();
      await once(shell, "exit");
    },
  };
}
