import { conformanceOn } from "../support/conformance-on.js";

// Here every job is in a parcel, and most parcels hold several.
conformanceOn("debian15", { from: 1, most: 2 });
