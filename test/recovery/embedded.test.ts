import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serverAccount } from "../../packages/pawl/src/store/postgres/embedded/account.js";
import { type EmbeddedServer, nativePostgres, startEmbedded } from "../../packages/pawl/src/store/postgres/embedded/index.js";
import { readPostmaster } from "../../packages/pawl/src/store/postgres/embedded/postmaster.js";
import { isAlive, isZombie } from "../../packages/pawl/src/store/postgres/embedded/processes.js";
import { eventually } from "../support/eventually.js";
import { ProcessFixture, STEADY_LEASES } from "../support/fixtures/process-fixture.js";
import { seededRandom } from "../support/seeded-random.js";
import { watchdog } from "../support/servers/watchdog.js";

const native = nativePostgres();

describe.skipIf(!native.ok)(`the embedded store${native.ok ? "" : ` (${native.reason})`}`, () => {
  let folder: string;
  let guard: ReturnType<typeof watchdog>;
  beforeAll(() => {
    const scratch = mkdtempSync("/tmp/pawl-test-");
    chmodSync(scratch, 0o711); // as root the server is another user
    folder = join(scratch, "store");
    guard = watchdog(scratch);
  });
  afterAll(() => guard.done());

  const serverPid = () => {
    const pid = readPostmaster(join(folder, "postgres"))?.pid;
    return pid !== undefined && isAlive(pid) ? pid : undefined;
  };

  it("loses nothing it acknowledged when its process, its server or both are killed with -9 while work comes in; a second process joins, the last one out stops it (C3, I1)", async () => {
    const dice = seededRandom("kill -9 of the embedded store");
    let server: EmbeddedServer | undefined = await startEmbedded(folder);
    guard.watch(server.pid, server.connection.host);
    const { host, port, user, database } = server.connection;
    await using fixture = await ProcessFixture.open({ url: `postgres://${user}@/${database}?host=${encodeURIComponent(host)}&port=${port}` });
    fixture.onDispose(() => server?.release());
    await fixture.pawl.close();
    await fixture.client.end();
    await server.release();
    server = undefined;
    expect(serverPid(), "it is off").toBeUndefined();

    const acks = () => fixture.handlerLog.lines("ack").length;
    const spawn = () =>
      fixture.spawn({ ...STEADY_LEASES.work, concurrency: 5 }, STEADY_LEASES.open, { url: folder, produce: { task: "counter", lanes: 4 } });
    let child = spawn();
    const victims = ["process", "server", "both", "server"] as const;
    for (const victim of victims) {
      const before = acks();
      await eventually(
        () => `work comes in (${child.describe()})`,
        () => acks() > before + 20,
        60_000,
      );
      await pause(dice.between(0, 300));
      const pid = serverPid();
      if (victim !== "process" && pid !== undefined) process.kill(pid, "SIGKILL");
      if (victim !== "server") {
        await child.kill();
        child = spawn();
      }
    }
    const before = acks();
    await eventually(
      () => `work comes in again (${child.describe()})`,
      () => acks() > before,
      60_000,
    );
    expect(child.exit, child.describe()).toBeUndefined();
    await child.kill();

    // The server is an orphan now, or dead: whoever comes next adopts it, or starts it.
    server = await startEmbedded(folder);
    guard.watch(server.pid, server.connection.host);
    await fixture.reconnect();
    const acked = fixture.handlerLog.lines("ack").map(({ job }) => job);
    fixture.acknowledged.push(...acked);
    const attempted = await fixture.storedIds();
    expect(
      acked.filter((id) => !attempted.includes(id)),
      "acknowledged and lost",
    ).toEqual([]);

    const [first, second] = [
      await fixture.worker({ ...STEADY_LEASES.work }, STEADY_LEASES.open, { url: folder }),
      await fixture.worker({ ...STEADY_LEASES.work }, STEADY_LEASES.open, { url: folder }),
    ];
    await first.kill();
    await fixture.drained();
    await fixture.check({ attempted });
    await fixture.client.end();
    await server.release();
    expect(serverPid(), "somebody else still needs it").toBeDefined();
    expect((await second.stop()).code).toBe(0);
    expect(serverPid(), "the last one out").toBeUndefined();
  });

  it.skipIf(process.platform !== "linux")("starts again where the first process of a container never reaps its dead server (C3)", async () => {
    const first = await startEmbedded(folder);
    guard.watch(first.pid, first.connection.host);
    await first.release();
    // A child of `sleep`, which never looks after it: dead, and still in the table of processes.
    // Of the server's own user: of others Postgres knows that they are none of its business.
    const careless = spawn("sh", ["-c", "sleep 0.5 & echo $!; exec sleep 60"], { ...serverAccount(), stdio: ["ignore", "pipe", "ignore"] });
    try {
      const [line] = (await once(careless.stdout, "data")) as [Buffer];
      const zombie = Number(line.toString());
      await eventually("it is a zombie", () => isZombie(zombie));
      writeFileSync(join(folder, "postgres", "postmaster.pid"), `${zombie}\n${join(folder, "postgres")}\n`);
      const again = await startEmbedded(folder);
      guard.watch(again.pid, again.connection.host);
      await again.release();
    } finally {
      careless.kill("SIGKILL");
    }
  });
});
