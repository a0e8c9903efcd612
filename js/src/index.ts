// A testnet for tests. docs/javascript.md in the project's sources describes its use.

export { findBinary } from "./binary.js";
export { Chain } from "./chain.js";
export { ApiError, DposlabError, GoneError, NoBinaryError, RefusedError, StartError, UsageError } from "./errors.js";
export type { Ending, Refusal } from "./errors.js";
export type { EventStream } from "./events.js";
export { Network, type Snapshot } from "./network.js";
export { Testnet } from "./testnet.js";
export type * from "./types.js";
export { View } from "./view.js";
