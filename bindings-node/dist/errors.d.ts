/** A machine-readable code that stays the same from version to version. */
export type ErrorCode = 'ERR_MCP_PEER' | 'ERR_MCP_CANCELLED' | 'ERR_MCP_TIMEOUT' | 'ERR_MCP_CLOSED' | 'ERR_MCP_CLOSED_LOCALLY' | 'ERR_MCP_CLOSED_BY_PEER' | 'ERR_MCP_PEER_EXITED' | 'ERR_MCP_STALLED' | 'ERR_MCP_UNRESPONSIVE' | 'ERR_MCP_IDLE' | 'ERR_MCP_SHUTTING_DOWN' | 'ERR_MCP_NO_COMMON_REVISION' | 'ERR_MCP_HANDSHAKE' | 'ERR_MCP_IO' | 'ERR_MCP_CARRIER' | 'ERR_MCP_SPAWN' | 'ERR_MCP_OVERLOADED' | 'ERR_MCP_BAD_ANSWER' | 'ERR_MCP_UNSUPPORTED' | 'ERR_MCP_MISUSE' | 'ERR_MCP_ACTION' | 'ERR_MCP_INVALID_PARAMS' | 'ERR_MCP_BREAKER_OPEN' | 'ERR_MCP_ROUND_OVER' | 'ERR_MCP_SCHEMA' | 'ERR_MCP_TEMPLATE' | 'ERR_MCP_DUPLICATE' | 'ERR_MCP_INTERNAL';
/**
 * How a transport failed; `refused` comes with a status. After `broken` and `session_lost` it is unknown whether the
 * server carried out the request.
 */
export type CarrierFault = 'unreachable' | 'tls' | 'timed_out' | 'refused' | 'redirected' | 'no_answer' | 'too_long' | 'broken' | 'session_lost';
/** Details of a failure besides its code and message. */
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
    /** The JSON-RPC error code of the peer; only with `ERR_MCP_PEER`. */
    readonly rpcCode?: number;
    /** How the transport failed; only with `ERR_MCP_CARRIER`. */
    readonly fault?: CarrierFault;
    /** The HTTP status of the failure; only with `ERR_MCP_CARRIER`. */
    readonly status?: number;
    /**
     * The `WWW-Authenticate` header as received: how the server wants clients to authenticate; only with
     * `ERR_MCP_CARRIER`.
     */
    readonly authenticate?: string;
    /** The `data` of the peer's error. */
    readonly data?: unknown;
    /** For a failed action: what went wrong, in a sentence for people without technical knowledge. */
    readonly forPeople?: string;
    /** Whether a retry may succeed. */
    readonly isTransient?: boolean;
    /** How long the server asks to wait before a retry, in ms. */
    readonly retryAfterMs?: number;
    constructor(code: ErrorCode, message: string, options?: Details & {
        cause?: unknown;
    });
}
/**
 * A failure whose message the model may see. Any other exception of a handler is reported to the model without its
 * message.
 */
export declare class ToolError extends Error {
    readonly name = "ToolError";
}
/**
 * A failure that is sent as a JSON-RPC error with its message, wherever it is thrown; unlike a `ToolError`, it is not
 * meant for the model. The codes of `not found` and `invalid params` depend on the revision; pass a number to choose
 * the code.
 */
export declare class ProtocolError extends Error {
    readonly name = "ProtocolError";
    readonly kind: 'internal' | 'invalid params' | 'not found' | 'missing capability' | number;
    /** The `data` of the error: any JSON value. */
    readonly data?: unknown;
    constructor(kind: ProtocolError['kind'], message: string, data?: unknown);
}
/** Details of an action dialect error besides its type and its message. */
export interface ActionErrorDetails {
    /** Further details: an object. */
    details?: any;
    /** A number, most often an HTTP status; by default the number of the type. */
    actionCode?: number;
    /** A URL with more information. */
    helpUrl?: string;
}
/**
 * An error of the action dialect. If a handler throws one, action clients receive it as it is; MCP clients receive its
 * message, and the error as structured content. `Client.action` rejects with one that holds the server's error.
 */
export declare class ActionError extends McpError implements ActionErrorDetails {
    readonly name: string;
    /** A type that the dialect defines, such as `RESOURCE_NOT_FOUND`, or one of the server's own. */
    readonly type: string;
    /** In a server's answer, the dialect's name of the type: for `PERMISSION_DENIED`, `AUTHORIZATION_FAILED`. */
    readonly kind?: string;
    readonly details?: any;
    readonly actionCode?: number;
    readonly helpUrl?: string;
    /** The metadata of the server's answer: `request_id`, `server_id`, `execution_time_ms` and so on. */
    readonly metadata?: Record<string, unknown>;
    constructor(type: string, message?: string, details?: ActionErrorDetails);
}
export {};
