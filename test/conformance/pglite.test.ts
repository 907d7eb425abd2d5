import { conformanceOnPglite } from "../support/fixtures/conformance-on.js";

conformanceOnPglite();
