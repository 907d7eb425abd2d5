import { conformanceOn } from "../support/conformance-on.js";

conformanceOn("embedded18");
