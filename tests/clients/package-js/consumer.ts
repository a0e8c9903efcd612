// Types as a user's compiler sees them; it is compiled and never run.
import { ApiError, Testnet, type Account, type Advanced, type Chain, type LabEvent, type Snapshot, type View } from "dposlab";
import { test as base, type Fixtures } from "dposlab/vitest";
import type { DposlabOptions } from "dposlab/jest";

export async function use(): Promise<void> {
    await using testnet = await Testnet.start({ delegates: 5, seed: 7, set: { "network.loss": 0.05 }, pace: "manual" });
    const chain: Chain = await testnet.chain({ scenario: new URL("file:///s.toml"), pace: 100 });
    const advanced: Advanced = await chain.advance({ until: { event: { kind: "rolled-back" } }, limit: 300 });
    const [first]: readonly Account[] = chain.accounts;
    await chain.faucet(first!.address, 5n);
    const snapshot: Snapshot = await chain.snapshot();
    await snapshot.revert();
    for await (const event of await chain.events({ kind: ["block.applied"], limit: advanced.height })) {
        const seen: LabEvent = event;
        console.log(seen.kind);
    }
    // @ts-expect-error an advance ends at one thing
    await chain.advance({ until: { heigth: 3 } });
    // @ts-expect-error there is no such pace
    await chain.pace("fast");
    // @ts-expect-error accounts are only read
    chain.accounts = [];
    const view: View = await testnet.view({ at: 88_000_000 });
    const [goesOn, earlier]: [Chain, View] = [await view.chain(), await view.step("round", { back: true })];
    console.log(await goesOn.status(), earlier.data.tip);
    // @ts-expect-error there is no such step
    await view.step("year");
    // @ts-expect-error a method of chaos rules
    await chain.chaos.add({ method: "PATCH" });
}

export function told(error: unknown): string {
    return error instanceof ApiError ? `${error.status}: ${error.reason}` : String(error);
}

export const test = base.extend({ chainOptions: { delegates: 3 } });
export const options: DposlabOptions = { testnet: { seed: 3 }, chain: { delegates: 3 } };
export const fixture = async ({ chain }: Fixtures): Promise<number> => (await dposlab.chain()).id + chain.id;
