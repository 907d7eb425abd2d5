import { conformanceOn } from "../support/fixtures/conformance-on.js";

conformanceOn("embedded18");
