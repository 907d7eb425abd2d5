import { request } from "node:http";

const CHUNK_BYTES = 262_144;

/** Sends a body of so many bytes, its length told before or not, as long as anybody reads; answers the status, or 0 if it was cut off before it could hear one. */
export function postOversized(url: string, { bytes, withLength }: { readonly bytes: number; readonly withLength: boolean }): Promise<number> {
  const chunk = Buffer.alloc(CHUNK_BYTES, "x");
  return new Promise((resolve) => {
    let heard = 0;
    const headers = { "content-type": "application/json", ...(withLength ? { "content-length": bytes } : {}) };
    const sent = request(`${url}/v1/jobs/many`, { method: "POST", agent: false, headers }, (response) => {
      heard = response.statusCode ?? 0;
      response.on("error", () => {}).resume();
    });
    sent.on("error", () => {});
    sent.on("close", () => resolve(heard));
    let left = bytes;
    const go = () => {
      while (left > 0 && heard === 0 && !sent.destroyed) {
        left -= chunk.length;
        if (!sent.write(chunk)) return void sent.once("drain", go);
      }
      if (heard === 0) sent.end();
      else sent.destroy();
    };
    go();
  });
}
