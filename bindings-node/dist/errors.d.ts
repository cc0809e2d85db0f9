/** What went wrong, in a word that stays the same from version to version. */
export type ErrorCode = 'ERR_MCP_PEER' | 'ERR_MCP_CANCELLED' | 'ERR_MCP_TIMEOUT' | 'ERR_MCP_CLOSED' | 'ERR_MCP_CLOSED_LOCALLY' | 'ERR_MCP_CLOSED_BY_PEER' | 'ERR_MCP_PEER_EXITED' | 'ERR_MCP_STALLED' | 'ERR_MCP_UNRESPONSIVE' | 'ERR_MCP_IDLE' | 'ERR_MCP_SHUTTING_DOWN' | 'ERR_MCP_NO_COMMON_REVISION' | 'ERR_MCP_HANDSHAKE' | 'ERR_MCP_IO' | 'ERR_MCP_CARRIER' | 'ERR_MCP_SPAWN' | 'ERR_MCP_OVERLOADED' | 'ERR_MCP_BAD_ANSWER' | 'ERR_MCP_UNSUPPORTED' | 'ERR_MCP_MISUSE' | 'ERR_MCP_ACTION' | 'ERR_MCP_INVALID_PARAMS' | 'ERR_MCP_BREAKER_OPEN' | 'ERR_MCP_ROUND_OVER' | 'ERR_MCP_SCHEMA' | 'ERR_MCP_TEMPLATE' | 'ERR_MCP_DUPLICATE' | 'ERR_MCP_INTERNAL';
/**
 * How what carries messages failed, in a word: `refused` with a status; whether the server did what it was asked to is
 * not known after `broken` and `session_lost`.
 */
export type CarrierFault = 'unreachable' | 'tls' | 'timed_out' | 'refused' | 'redirected' | 'no_answer' | 'too_long' | 'broken' | 'session_lost';
/** What is known of a failure besides its code and its sentence. */
interface Details {
    rpcCode?: number;
    fault?: CarrierFault;
    status?: number;
    authenticate?: string;
    data?: unknown;
    forPeople?: string;
    isTransient?: boolean;
    retryAfterMs?: number;
}
/** A failure of a call, a connection or a registration. */
export declare class McpError extends Error {
    readonly name: string;
    readonly code: ErrorCode;
    /** The number of the peer's error; only with `ERR_MCP_PEER`. */
    readonly rpcCode?: number;
    /** How the carrier failed; only with `ERR_MCP_CARRIER`. */
    readonly fault?: CarrierFault;
    /** The status with which HTTP failed; only with `ERR_MCP_CARRIER`. */
    readonly status?: number;
    /** How the server wants to be shown who asks, `WWW-Authenticate` as it came; only with `ERR_MCP_CARRIER`. */
    readonly authenticate?: string;
    /** The data of the peer's error. */
    readonly data?: unknown;
    /** Of an action that failed: what went wrong, in a sentence for people who know nothing of protocols. */
    readonly forPeople?: string;
    /** Whether to try it again may help. */
    readonly isTransient?: boolean;
    /** How long the server asks to wait before. */
    readonly retryAfterMs?: number;
    constructor(code: ErrorCode, message: string, options?: Details & {
        cause?: unknown;
    });
}
/**
 * A failure whose text the model may see. Whatever else a handler throws is told to the model as a failure without
 * its text.
 */
export declare class ToolError extends Error {
    readonly name = "ToolError";
}
/**
 * A failure that is told as an error of the protocol, with its text, wherever it is thrown: not for the model to read,
 * as a `ToolError` is. What does not exist, and what is asked for wrongly, has another number in each revision; or give
 * a number of your own.
 */
export declare class ProtocolError extends Error {
    readonly name = "ProtocolError";
    readonly kind: 'internal' | 'invalid params' | 'not found' | 'missing capability' | number;
    /** What else the client is told: anything that JSON can say. */
    readonly data?: unknown;
    constructor(kind: ProtocolError['kind'], message: string, data?: unknown);
}
/** What an error of the action dialect says besides its type and its message. */
export interface ActionErrorDetails {
    /** What else there is to know: an object. */
    details?: any;
    /** A number, most often a status of HTTP; that of the type by default. */
    actionCode?: number;
    /** Where to read more. */
    helpUrl?: string;
}
/**
 * An error of the action dialect: thrown by a handler, its clients get it as it is, and those of MCP its message, and the
 * same as structured content. What `Client.action` fails with, it is what the server answered.
 */
export declare class ActionError extends McpError implements ActionErrorDetails {
    readonly name: string;
    /** One that the dialect names, as `RESOURCE_NOT_FOUND`, or the server's own. */
    readonly type: string;
    /** The type as the dialect names it, of what a server answered: for `PERMISSION_DENIED`, `AUTHORIZATION_FAILED`. */
    readonly kind?: string;
    readonly details?: any;
    readonly actionCode?: number;
    readonly helpUrl?: string;
    /** What the server says of such an answer: `request_id`, `server_id`, `execution_time_ms` and so on. */
    readonly metadata?: Record<string, unknown>;
    constructor(type: string, message?: string, details?: ActionErrorDetails);
}
export {};
