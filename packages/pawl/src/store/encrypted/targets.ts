import type { OpenTarget } from "../../core/access/push-target.js";
import type { TargetStore } from "../port/jobs/targets.js";
import { Decrypter, Encrypter, targetContext } from "./encrypter.js";
import type { KeyStore } from "./key-store.js";

/** Secrets of targets are encrypted for their tenant and task. One that does not open signs nothing: its target gets no jobs. */
export function encryptedTargets(targets: TargetStore, keyStore: KeyStore): TargetStore {
  const encrypted = async (secret: string, tenant: string, task: string) =>
    (await Encrypter.of(keyStore, [tenant])).encrypt(JSON.stringify(secret), tenant, targetContext(task));

  return {
    ...targets,
    put: async (target) => targets.put({ ...target, secret: await encrypted(target.secret, target.tenant, target.task) }),
    rotate: async (ref, how) => targets.rotate(ref, { ...how, secret: await encrypted(how.secret, ref.tenant, ref.task) }),
    async open(limit) {
      const found = await targets.open(limit);
      const decrypter = await Decrypter.of(
        keyStore,
        found.targets.flatMap(({ secrets }) => secrets.map(({ text }) => text)),
      );
      return { ...found, targets: found.targets.map((target) => decrypted(decrypter, target)).filter(({ secrets }) => secrets.length > 0) };
    },
  };
}

function decrypted(decrypter: Decrypter, target: OpenTarget): OpenTarget {
  const { tenant, task, secrets } = target;
  return {
    ...target,
    secrets: secrets.flatMap(({ text, ...rest }) => {
      const found = decrypter.decrypt(text, targetContext(task), tenant);
      return "text" in found && found.text !== text ? [{ ...rest, text: JSON.parse(found.text) as string }] : [];
    }),
  };
}
