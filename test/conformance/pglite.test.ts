import { conformanceOnPglite } from "../support/conformance-on.js";

conformanceOnPglite();
