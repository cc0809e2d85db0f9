/** What went wrong, in a word that stays the same from version to version. */
export type ErrorCode =
    | 'ERR_MCP_PEER'
    | 'ERR_MCP_CANCELLED'
    | 'ERR_MCP_TIMEOUT'
    | 'ERR_MCP_CLOSED'
    | 'ERR_MCP_CLOSED_LOCALLY'
    | 'ERR_MCP_CLOSED_BY_PEER'
    | 'ERR_MCP_PEER_EXITED'
    | 'ERR_MCP_STALLED'
    | 'ERR_MCP_UNRESPONSIVE'
    | 'ERR_MCP_IDLE'
    | 'ERR_MCP_SHUTTING_DOWN'
    | 'ERR_MCP_NO_COMMON_REVISION'
    | 'ERR_MCP_HANDSHAKE'
    | 'ERR_MCP_IO'
    | 'ERR_MCP_SPAWN'
    | 'ERR_MCP_OVERLOADED'
    | 'ERR_MCP_BAD_ANSWER'
    | 'ERR_MCP_UNSUPPORTED'
    | 'ERR_MCP_MISUSE'
    | 'ERR_MCP_ROUND_OVER'
    | 'ERR_MCP_SCHEMA'
    | 'ERR_MCP_TEMPLATE'
    | 'ERR_MCP_DUPLICATE'
    | 'ERR_MCP_INTERNAL';

/** A failure of a call, a connection or a registration. */
export class McpError extends Error {
    override readonly name = 'McpError';
    readonly code: ErrorCode;
    /** The number of the peer's error; only with `ERR_MCP_PEER`. */
    declare readonly rpcCode?: number;
    /** The data of the peer's error. */
    declare readonly data?: unknown;

    constructor(code: ErrorCode, message: string, options: { cause?: unknown; rpcCode?: number; data?: unknown } = {}) {
        super(message, 'cause' in options ? { cause: options.cause } : undefined);
        this.code = code;
        if (options.rpcCode !== undefined) this.rpcCode = options.rpcCode;
        if ('data' in options) this.data = options.data;
    }
}

/**
 * A failure whose text the model may see. Whatever else a handler throws is told to the model as a failure without
 * its text.
 */
export class ToolError extends Error {
    override readonly name = 'ToolError';
}

/**
 * A failure that is told as an error of the protocol, with its text, wherever it is thrown: not for the model to read,
 * as a `ToolError` is. What does not exist, and what is asked for wrongly, has another number in each revision; or give
 * a number of your own.
 */
export class ProtocolError extends Error {
    override readonly name = 'ProtocolError';
    readonly kind: 'internal' | 'invalid params' | 'not found' | 'missing capability' | number;
    /** What else the client is told: anything that JSON can say. */
    declare readonly data?: unknown;

    constructor(kind: ProtocolError['kind'], message: string, data?: unknown) {
        super(message);
        this.kind = kind;
        if (data !== undefined) this.data = data;
    }
}

/** @internal What the engine says of a failure. */
export interface Failure {
    code: ErrorCode;
    message: string;
    rpcCode?: number;
    data?: unknown;
    cause?: Failure;
}

/** @internal */
export function revive(failure: Failure): McpError {
    const { code, message, cause, ...rest } = failure;
    return new McpError(code, message, cause ? { ...rest, cause: revive(cause) } : rest);
}

/** @internal Calls the engine; what it throws becomes an error of ours. */
export function guarded<T>(call: () => T): T {
    try {
        return call();
    } catch (thrown) {
        const { code, message } = thrown as { code: ErrorCode; message: string };
        throw new McpError(String(code).startsWith('ERR_MCP_') ? code : 'ERR_MCP_INTERNAL', message);
    }
}
