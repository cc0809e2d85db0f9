/**
 * The parts of the official SDKs that this module uses. Both generations are recognized by their shape and never
 * imported, so that the program's own copy is used.
 */
import { McpError } from '../errors';
import { hasRegistries } from './private';

/** The id of a request. */
export type Id = string | number;

/** A JSON-RPC message, as the SDKs pass it. */
export interface Message {
    jsonrpc: '2.0';
    id?: Id | undefined;
    method?: string;
    params?: any;
    result?: any;
    error?: { code: number; message: string; data?: unknown };
}

/** The SDKs' options of a message to send. */
export interface SendOptions {
    relatedRequestId?: Id | undefined;
}

/** The `Transport` interface of either SDK. */
export interface SdkTransport {
    onclose?: () => void;
    onerror?: (error: Error) => void;
    onmessage?: (message: any, extra?: any) => void;
    sessionId?: string | undefined;
    start(): Promise<void>;
    send(message: any, options?: any): Promise<void>;
    close(): Promise<void>;
}

/**
 * An `McpServer` or a `Server` of `@modelcontextprotocol/sdk` (v1) or `@modelcontextprotocol/server` (v2), or a
 * `FastMCP` of `fastmcp`.
 */
export interface SdkServer {
    connect(transport: any): Promise<unknown>;
}

/** @internal `Server`, the SDKs' protocol object of a server. */
export interface SdkProtocol extends SdkServer {
    request(request: any, schemaOrOptions?: any, options?: any): Promise<any>;
    notification(notification: any, options?: any): Promise<void>;
    removeRequestHandler(method: string): void;
    /** v2. */
    getCapabilities?(): object;
}

/** @internal A tool as an `McpServer` has registered it. */
export interface SdkTool {
    enabled: boolean;
    /** v2: the scopes that it wants over HTTP. */
    scopeChallenge?: unknown;
    inputSchema?: any;
    outputSchema?: any;
    execution?: { taskSupport?: string };
    /** v1. */
    handler?: any;
    /** v2. */
    executor?: (args: unknown, context: object) => unknown;
}

/** @internal */
export interface SdkResource {
    enabled: boolean;
    /** v2: the scopes that it wants over HTTP. */
    scopeChallenge?: unknown;
    readCallback: (...args: any[]) => unknown;
    resourceTemplate?: { listCallback?: unknown; uriTemplate: { match(uri: string): object | null } };
    cacheHint?: unknown;
}

/** @internal */
export interface SdkPrompt {
    enabled: boolean;
    /** v2: the scopes that it wants over HTTP. */
    scopeChallenge?: unknown;
    cacheHint?: unknown;
    argsSchema?: any;
    /** v1. */
    callback?: (...args: any[]) => unknown;
    /** v2. */
    handler?: (args: unknown, context: object) => unknown;
}

/** @internal `McpServer`. */
export interface SdkMcpServer extends SdkServer {
    server: SdkProtocol;
    isConnected(): boolean;
}

/** @internal The `McpServer`; `undefined` for a plain `Server`, or for one of unknown shape. */
export function mcpServerOf(server: SdkServer): SdkMcpServer | undefined {
    const isKnown = typeof (server as Partial<SdkMcpServer>).server === 'object' && hasRegistries(server);
    return isKnown ? (server as SdkMcpServer) : undefined;
}

/** @internal The protocol object of a server. `FastMCP` has one for each session, which `connect` returns. */
export function protocolOf(server: object): SdkProtocol | undefined {
    const { server: inner } = server as Partial<SdkMcpServer>;
    const found = (typeof inner === 'object' ? inner : server) as Partial<SdkProtocol>;
    return typeof found.request === 'function' && typeof found.notification === 'function' ? (found as SdkProtocol) : undefined;
}

/** @internal Whether a `FastMCP` authenticates clients: it does so with data that only its own listeners provide. */
export function authenticates(server: object): boolean {
    const { options } = server as { options?: { auth?: unknown; authenticate?: unknown } };
    return (options?.authenticate ?? options?.auth) !== undefined;
}

/** @internal An entry of a registry, which is a plain object. */
export function entryOf<T>(registry: Record<string, T>, name: unknown): T | undefined {
    return typeof name === 'string' && Object.hasOwn(registry, name) ? registry[name] : undefined;
}

/** @internal Whether a value is a JSON object. */
export function isObject(value: unknown): value is Record<string, any> {
    return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** @internal Whether a request uses features of the SDK that are not implemented here. */
export function isOutOfTheOrdinary({ _meta, requestState, inputResponses }: Record<string, any>): boolean {
    if (requestState !== undefined || inputResponses !== undefined) return true;
    if (_meta === undefined) return false;
    return !isObject(_meta) || _meta['io.modelcontextprotocol/related-task'] !== undefined;
}

/**
 * @internal Throws if an option of the SDKs' classes is set that ours do not support; `refused` says what replaces it.
 */
export function refuseOptions(options: object, refused: Readonly<Record<string, string>>): void {
    for (const [name, instead] of Object.entries(refused))
        if ((options as Record<string, unknown>)[name] !== undefined) throw new McpError('ERR_MCP_MISUSE', `${name} is not supported here: ${instead}`);
}

/**
 * @internal Whether to drop a message because answers are JSON only: then nothing may precede the answer to a request,
 * and notifications are dropped, as in the SDKs. A request to the client throws, where the SDKs would wait forever.
 */
export function isLeftOut({ method, id }: Message, { relatedRequestId }: SendOptions = {}): boolean {
    if (method === undefined || relatedRequestId === undefined) return false;
    if (id !== undefined) throw new McpError('ERR_MCP_MISUSE', `with JSON answers only, a handler cannot send ${method} to its client`);
    return true;
}
