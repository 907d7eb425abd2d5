import { blockOf, GuessLimit, type LocalApiKeys, parseApiKey, type Verified } from "pawl/service";
import type { Access, Principal, Refusal } from "../http/access/principal.js";
import { NamedLocks } from "./named-locks.js";

/**
 * Callers by their API keys. All that is wrong with one looks the same from outside. An address that is wrong too often is
 * told to wait. A good key never is: behind a proxy everybody may come from one address, and nobody may lock the others out.
 * So its keys are still looked at, one after the other, that whoever guesses keeps the store no busier than one caller does.
 * What is no key at all is counted by itself, for the same reason: it takes nothing from those who have one.
 * Routes that answer while the store is away believe in a key by what the store last told of it.
 */
export function keyAccess(keys: Pick<LocalApiKeys, "verify" | "recall" | "remembered">, now: () => number = () => performance.now()): Access {
  const guesses = new GuessLimit();
  const keyless = new GuessLimit();
  const locks = new NamedLocks();
  const refused = (limit: GuessLimit, address: string): Refusal => {
    const retryAfter = limit.wait(address, now());
    if (retryAfter > 0) return { refused: "limited", retryAfter };
    limit.failed(address, now());
    return { refused: "unauthenticated" };
  };
  const verified = async (text: string, address: string): Promise<Verified> => {
    if (guesses.wait(address, now()) === 0) return keys.verify(text);
    return (await keys.recall(text)) ?? locks.withLock(blockOf(address), () => keys.verify(text));
  };
  return {
    async authenticate({ authorization, address, inOutage }) {
      const text = keyOf(authorization);
      if (text === undefined) return refused(keyless, address);
      const verification = verified(text, address);
      const found = await (inOutage === true ? orRemembered(verification, () => keys.remembered(text)) : verification);
      return found.ok ? principalOf(found) : refused(guesses, address);
    },
  };
}

/** ms that who is answered in an outage, too, waits for the store: Prometheus gives up after ten seconds */
const STORE_TIMEOUT_MS = 1_000;

/** What the store says of a key; while it says nothing, what it last said, if that is known. */
async function orRemembered(verification: Promise<Verified>, remembered: () => Promise<Verified | undefined>): Promise<Verified> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), STORE_TIMEOUT_MS);
  });
  const answer = await Promise.race([verification.catch(() => undefined), timeout]);
  clearTimeout(timer);
  return answer ?? (await remembered()) ?? verification;
}

function keyOf(authorization: string | undefined): string | undefined {
  const text = /^Bearer ([^\s]{1,256})$/i.exec(authorization ?? "")?.[1];
  return text === undefined || parseApiKey(text) === undefined ? undefined : text;
}

function principalOf({ credential }: Verified & { readonly ok: true }): Principal {
  const { key, tenant, grants } = credential;
  return { name: `key:${key}`, tenant, grants };
}
