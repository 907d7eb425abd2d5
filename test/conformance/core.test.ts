import { CORE_TOPICS, conformanceOn, conformanceOnPglite } from "../support/fixtures/conformance-on.js";

// All of the suite on these is for `npm run test:rest`: what they have in common with the embedded Postgres is tested there.
conformanceOnPglite(CORE_TOPICS);
conformanceOn("debian15", 2, CORE_TOPICS);
