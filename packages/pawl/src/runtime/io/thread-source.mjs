/**
 * Where a thread starts when Pawl runs from its TypeScript source (its tests, its examples): loads the loader, then the
 * file named. Loaders of the parent do not reach a thread on every Node we support, nor does tsx as a flag.
 */
import { register } from "tsx/esm/api";

register();
await import(process.argv[2]);
