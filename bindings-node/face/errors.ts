/** A machine-readable code that stays the same from version to version. */
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
    | 'ERR_MCP_CARRIER'
    | 'ERR_MCP_LOGIN'
    | 'ERR_MCP_SPAWN'
    | 'ERR_MCP_OVERLOADED'
    | 'ERR_MCP_BAD_ANSWER'
    | 'ERR_MCP_UNSUPPORTED'
    | 'ERR_MCP_MISUSE'
    | 'ERR_MCP_ACTION'
    | 'ERR_MCP_INVALID_PARAMS'
    | 'ERR_MCP_BREAKER_OPEN'
    | 'ERR_MCP_ROUND_OVER'
    | 'ERR_MCP_SCHEMA'
    | 'ERR_MCP_TEMPLATE'
    | 'ERR_MCP_DUPLICATE'
    | 'ERR_MCP_INTERNAL';

/**
 * How a transport failed; `refused` comes with a status. After `broken` and `session_lost` it is unknown whether the
 * server carried out the request.
 */
export type CarrierFault =
    | 'unreachable'
    | 'tls'
    | 'timed_out'
    | 'refused'
    | 'redirected'
    | 'no_answer'
    | 'too_long'
    | 'broken'
    | 'session_lost';

/** The part of a login that failed. */
export type LoginStep =
    /** The options, or what a function of the program returned. */
    | 'options'
    /** Finding out which authorization server the MCP server trusts. */
    | 'resource'
    /** Reading the metadata of the authorization server. */
    | 'discovery'
    /** Registering the client. */
    | 'registration'
    /** The user's consent. */
    | 'authorization'
    /** Asking for an access token. */
    | 'token'
    /** Replacing an access token that has ended. */
    | 'refresh'
    /** More scopes for one request. */
    | 'step_up'
    /** Ending tokens. */
    | 'revocation'
    /** The store of credentials. */
    | 'store';

/** Details of a failure besides its code and message. */
interface Details {
    /** The JSON-RPC error code of the peer; only with `ERR_MCP_PEER`. */
    readonly rpcCode?: number;
    /** How the transport failed; only with `ERR_MCP_CARRIER` and `ERR_MCP_LOGIN`. */
    readonly fault?: CarrierFault;
    /** The HTTP status of the failure; only with `ERR_MCP_CARRIER` and `ERR_MCP_LOGIN`. */
    readonly status?: number;
    /**
     * The `WWW-Authenticate` header as received: how the server wants clients to authenticate; only with
     * `ERR_MCP_CARRIER`.
     */
    readonly authenticate?: string;
    /** The part of the login that failed; only with `ERR_MCP_LOGIN`. */
    readonly loginStep?: LoginStep;
    /** The error code that the authorization server gave, such as `access_denied`; only with `ERR_MCP_LOGIN`. */
    readonly oauthError?: string;
    /** The `data` of the peer's error. */
    readonly data?: unknown;
    /** For a failed action: what went wrong, in a sentence for people without technical knowledge. */
    readonly forPeople?: string;
    /** Whether a retry may succeed. */
    readonly isTransient?: boolean;
    /** How long the server asks to wait before a retry, in ms. */
    readonly retryAfterMs?: number;
}

export interface McpError extends Details {}

/** A failure of a call, a connection or a registration. */
export class McpError extends Error {
    override readonly name: string = 'McpError';
    declare readonly code: ErrorCode;

    constructor(code: ErrorCode, message: string, options: Details & { cause?: unknown } = {}) {
        super(message, 'cause' in options ? { cause: options.cause } : undefined);
        const { cause, ...details } = options;
        Object.assign(this, { code, ...details });
    }
}

/**
 * A failure whose message the model may see. Any other exception of a handler is reported to the model without its
 * message.
 */
export class ToolError extends Error {
    override readonly name = 'ToolError';
}

/**
 * A failure that is sent as a JSON-RPC error with its message, wherever it is thrown; unlike a `ToolError`, it is not
 * meant for the model. The codes of `not found` and `invalid params` depend on the revision; pass a number to choose
 * the code.
 */
export class ProtocolError extends Error {
    override readonly name = 'ProtocolError';
    readonly kind: 'internal' | 'invalid params' | 'not found' | 'missing capability' | number;
    /** The `data` of the error: any JSON value. */
    declare readonly data?: unknown;

    constructor(kind: ProtocolError['kind'], message: string, data?: unknown) {
        super(message);
        this.kind = kind;
        if (data !== undefined) this.data = data;
    }
}

/** Details of an action dialect error besides its type and its message. */
export interface ActionErrorDetails {
    /** Further details: an object. */
    readonly details?: any;
    /** A number, most often an HTTP status; by default the number of the type. */
    readonly actionCode?: number;
    /** A URL with more information. */
    readonly helpUrl?: string;
}

export interface ActionError extends ActionErrorDetails {}

/**
 * An error of the action dialect. If a handler throws one, action clients receive it as it is; MCP clients receive its
 * message, and the error as structured content. `Client.action` rejects with one that holds the server's error.
 */
export class ActionError extends McpError {
    override readonly name: string = 'ActionError';
    /** A type that the dialect defines, such as `RESOURCE_NOT_FOUND`, or one of the server's own. */
    readonly type: string;
    /** In a server's answer, the dialect's name of the type: for `PERMISSION_DENIED`, `AUTHORIZATION_FAILED`. */
    declare readonly kind?: string;
    /** The metadata of the server's answer: `request_id`, `server_id`, `execution_time_ms` and so on. */
    declare readonly metadata?: Record<string, unknown>;

    constructor(type: string, message = '', details: ActionErrorDetails = {}) {
        super('ERR_MCP_ACTION', message, details as Details);
        this.type = type;
    }
}

/** @internal A failure as the engine reports it. */
export interface Failure extends Details, ActionErrorDetails {
    code: ErrorCode;
    message: string;
    cause?: Failure;
    /** Only of an `ActionError`. */
    type?: string;
}

/** @internal */
export function revive(failure: Failure): McpError {
    const { code, message, cause, type, ...rest } = failure;
    if (type !== undefined) return new ActionError(type, message, rest);
    return new McpError(code, message, cause ? { ...rest, cause: revive(cause) } : rest);
}

/** @internal Calls the engine; an exception becomes an `McpError`. */
export function guarded<T>(call: () => T): T {
    try {
        return call();
    } catch (thrown) {
        const { code, message } = thrown as { code: ErrorCode; message: string };
        throw new McpError(String(code).startsWith('ERR_MCP_') ? code : 'ERR_MCP_INTERNAL', message);
    }
}
