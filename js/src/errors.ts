// The errors of this package. Each has a class of its own with its details.

/** Any error of this package. */
export class DposlabError extends Error {
    override name = "DposlabError";
}

/** The caller's mistake: the message names the argument, what was found and what is allowed. No request was sent. */
export class UsageError extends DposlabError {
    override name = "UsageError";
}

/** The testnet answered with an error; the message is the API's own. */
export class ApiError extends DposlabError {
    override name = "ApiError";

    /**
     * @param method of the request
     * @param path of the request
     * @param status 400 to 599
     * @param body the whole answer: usually an object with `statusCode`, `error` and `message`, otherwise a text
     */
    constructor(
        readonly method: string,
        readonly path: string,
        readonly status: number,
        readonly body: unknown,
    ) {
        super(`${method} ${path}: ${status}: ${messageOf(body)}`);
    }

    /** The message of the API, without the request. */
    get reason(): string {
        return messageOf(this.body);
    }
}

/** Why the node refused a transaction. */
export interface Refusal {
    /** The id with which it was sent. */
    id: string;
    /** Such as `ERR_LOW_FEE`. */
    type: string;
    message: string;
}

/** The node refused submitted transactions. The message names each of them with the reason. */
export class RefusedError extends DposlabError {
    override name = "RefusedError";

    /**
     * @param refusals each refused transaction
     * @param accepted the ids of the transactions that the node accepted in the same request
     */
    constructor(
        readonly refusals: readonly Refusal[],
        readonly accepted: readonly string[],
    ) {
        super(refusals.map(({ id, type, message }) => `the node refused transaction ${id}: ${type}: ${message}`).join("\n"));
    }
}

function messageOf(body: unknown): string {
    const said = typeof body === "object" && body !== null && "message" in body ? body.message : body;
    return typeof said === "string" ? said : JSON.stringify(said);
}

/** How a process ended: its exit code or its signal, and the end of its standard error. */
export interface Ending {
    code: number | null;
    signal: NodeJS.Signals | null;
    stderr: string;
}

/** Says in words how a process ended. */
export function inWords({ code, signal, stderr }: Ending): string {
    const how = signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`;
    const said = stderr.trim();
    return said === "" ? how : `${how}: ${said}`;
}

/** The process did not become a testnet. */
export class StartError extends DposlabError {
    override name = "StartError";

    /**
     * @param command the words of the command that was started
     * @param ending how the process ended; undefined if it could not be started or was not ready in time
     */
    constructor(
        why: string,
        readonly command: readonly string[],
        readonly ending?: Ending,
        options?: ErrorOptions,
    ) {
        super(`${command.join(" ")}: ${why}`, options);
    }
}

/** The testnet is gone and no longer answers. */
export class GoneError extends DposlabError {
    override name = "GoneError";

    constructor(
        why: string,
        /** How its process ended; undefined if that is unknown. */
        readonly ending?: Ending,
        options?: ErrorOptions,
    ) {
        super(why, options);
    }
}

/** There is no program for this platform. */
export class NoBinaryError extends DposlabError {
    override name = "NoBinaryError";

    constructor(
        why: string,
        /** Such as `linux-x64-gnu`. */
        readonly platform: string,
    ) {
        super(why);
    }
}
