import { GuessLimit, type KeyRing, type Verified } from "pawl";
import type { Access, Principal } from "../http/access.js";

/**
 * Callers by their API keys. All that is wrong with one looks the same from outside. An address that is wrong too often is
 * told to wait, but for keys that were good here of late: behind a proxy everybody comes from one address, and nobody may
 * lock the others out.
 */
export function keyAccess(keys: Pick<KeyRing, "verify" | "recall">, now: () => number = () => performance.now()): Access {
  const guesses = new GuessLimit();
  return {
    async authenticate({ authorization, address }) {
      const text = keyOf(authorization);
      if (text === undefined) return { refused: "unauthenticated" };
      const retryAfter = guesses.wait(address, now());
      const verified = retryAfter > 0 ? await keys.recall(text) : await keys.verify(text);
      if (verified?.ok) return principalOf(verified);
      if (retryAfter > 0) return { refused: "limited", retryAfter };
      guesses.failed(address, now());
      return { refused: "unauthenticated" };
    },
  };
}

function keyOf(authorization: string | undefined): string | undefined {
  return /^Bearer ([^\s]{1,256})$/i.exec(authorization ?? "")?.[1];
}

function principalOf({ credential }: Verified & { readonly ok: true }): Principal {
  const { key, tenant, grants } = credential;
  return { name: `key:${key}`, tenant, grants };
}
