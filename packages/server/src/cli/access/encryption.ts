import type { Command } from "commander";
import { serviceOf } from "pawl/service";
import type { Act } from "../session.js";

export function build(command: Command, act: Act): void {
  act(command.command("status").description("the master keys that wrap data keys, and whether they are here"), async ({ out, pawl }) => {
    const masterKeys = await serviceOf(await pawl()).encryption.status();
    out.answer({ masterKeys }, () => {
      if (masterKeys.length === 0) return out.line("nothing in this store is encrypted");
      out.table(
        ["master key", "data keys", "here"],
        masterKeys.map(({ master, count, here }) => [master, count, here ? "yes" : { text: "no", style: "red" }]),
      );
    });
  });
  act(command.command("rewrap").description("wrap all data keys by the newest master key"), async ({ out, pawl }) => {
    const done = await serviceOf(await pawl()).encryption.rewrap();
    out.answer(done, () => {
      out.line(`${done.rewrapped} data keys rewrapped`);
      if (done.left > 0) out.note(`${done.left} are left: their master key is not here`);
    });
  });
  act(command.command("rotate <tenants...>").description("a new data key for what comes from now on"), async ({ out, pawl }, _, ...names) => {
    const { encryption } = serviceOf(await pawl());
    const rotated: { readonly tenant: string; readonly version: number }[] = [];
    for (const tenant of names.flat()) rotated.push({ tenant, ...(await encryption.rotate(tenant)) });
    out.answer({ rotated }, () => rotated.forEach(({ tenant, version }) => void out.line(`${tenant}: version ${version}`)));
  });
}
