import type { OpenTarget } from "../../core/target.js";
import type { TargetStore } from "../port-targets.js";
import { Opener, Sealer, targetPlace } from "./sealer.js";
import type { Vault } from "./vault.js";

/** Secrets of targets are sealed for their tenant and task. One that does not open signs nothing: its target gets no jobs. */
export function sealedTargets(targets: TargetStore, vault: Vault): TargetStore {
  const sealed = async (secret: string, tenant: string, task: string) =>
    (await Sealer.of(vault, [tenant])).seal(JSON.stringify(secret), tenant, targetPlace(task));

  return {
    ...targets,
    put: async (target) => targets.put({ ...target, secret: await sealed(target.secret, target.tenant, target.task) }),
    rotate: async (ref, how) => targets.rotate(ref, { ...how, secret: await sealed(how.secret, ref.tenant, ref.task) }),
    async open(limit) {
      const found = await targets.open(limit);
      const opener = await Opener.of(
        vault,
        found.targets.flatMap(({ secrets }) => secrets.map(({ text }) => text)),
      );
      return { ...found, targets: found.targets.map((target) => opened(opener, target)).filter(({ secrets }) => secrets.length > 0) };
    },
  };
}

function opened(opener: Opener, target: OpenTarget): OpenTarget {
  const { tenant, task, secrets } = target;
  return {
    ...target,
    secrets: secrets.flatMap(({ text, ...rest }) => {
      const found = opener.open(text, targetPlace(task), tenant);
      return "text" in found && found.text !== text ? [{ ...rest, text: JSON.parse(found.text) as string }] : [];
    }),
  };
}
