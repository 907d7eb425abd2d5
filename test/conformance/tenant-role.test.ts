import { conformanceOn } from "../support/fixtures/conformance-on.js";

/** The suite again where the database has roles: what a tenant asks for is read as the one that sees that tenant's rows. */
conformanceOn("embedded18", 3, undefined, true);
