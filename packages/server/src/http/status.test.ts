import { expect, test } from "vitest";
import { STATUS } from "./status.js";

/** What no caller can mend: the settings, the secrets, the store and the code of the service itself. */
const OF_THE_SERVICE =
  /^(pepper_missing|encryption_missing|master_key_missing|target_secret_unencrypted|payload_undecryptable|internal|service_|store_|schema_|roles_|driver_|embedded_|folder_|transaction_|task_duplicate|renewal_failed|wait_timeout|closed|already_started|worker_stuck|enqueue_uncertain)/;

test("no code of a fault of the service itself blames the caller with a 4xx, and all others do", () => {
  const codes = Object.entries(STATUS);
  expect(codes.filter(([code, status]) => OF_THE_SERVICE.test(code) !== status >= 500)).toEqual([]);
});
