// A project of TypeScript that has only the package and @types/node. It is compiled with the least options, and never run.
import { Testnet, type Chain, type Snapshot } from "dposlab";

export async function use(): Promise<readonly string[]> {
    const testnet = await Testnet.start({ delegates: 5, seed: 18_446_744_073_709_551_615n });
    const chain: Chain = await testnet.chain();
    const snapshot: Snapshot = await chain.snapshot("one");
    await chain.revert(snapshot.name ?? snapshot);
    for await (const { kind } of await chain.events({ kind: ["block.applied"], limit: 1 })) await chain.lab("GET", `/x/${kind}`);
    await chain.delete();
    await testnet.stop();
    return testnet.urls;
}
