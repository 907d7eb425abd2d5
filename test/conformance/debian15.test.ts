import { conformanceOn } from "../support/fixtures/conformance-on.js";

// Here a ready row holds two jobs at most, so that batches make several.
conformanceOn("debian15", 2);
