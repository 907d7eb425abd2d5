import { conformanceOn, conformanceOnPglite, HEART } from "../support/conformance-on.js";

// All of the suite on these is for `npm run test:rest`: what they have in common with the embedded Postgres is tested there.
conformanceOnPglite(HEART);
conformanceOn("debian15", 2, HEART);
