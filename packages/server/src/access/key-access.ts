import { GuessLimit, type KeyRing, parseApiKey, type Verified } from "pawl";
import type { Access, Principal, Refusal } from "../http/access.js";

/**
 * Callers by their API keys. All that is wrong with one looks the same from outside. An address that is wrong too often is
 * told to wait, but for keys that were good here of late: behind a proxy everybody comes from one address, and nobody may
 * lock the others out. What is no key at all is counted by itself, for the same reason: it takes nothing from those who have one.
 */
export function keyAccess(keys: Pick<KeyRing, "verify" | "recall">, now: () => number = () => performance.now()): Access {
  const guesses = new GuessLimit();
  const keyless = new GuessLimit();
  const refused = (limit: GuessLimit, address: string, retryAfter: number): Refusal => {
    if (retryAfter > 0) return { refused: "limited", retryAfter };
    limit.failed(address, now());
    return { refused: "unauthenticated" };
  };
  return {
    async authenticate({ authorization, address }) {
      const text = keyOf(authorization);
      if (text === undefined) return refused(keyless, address, keyless.wait(address, now()));
      const retryAfter = guesses.wait(address, now());
      const verified = retryAfter > 0 ? await keys.recall(text) : await keys.verify(text);
      return verified?.ok ? principalOf(verified) : refused(guesses, address, retryAfter);
    },
  };
}

function keyOf(authorization: string | undefined): string | undefined {
  const text = /^Bearer ([^\s]{1,256})$/i.exec(authorization ?? "")?.[1];
  return text === undefined || parseApiKey(text) === undefined ? undefined : text;
}

function principalOf({ credential }: Verified & { readonly ok: true }): Principal {
  const { key, tenant, grants } = credential;
  return { name: `key:${key}`, tenant, grants };
}
