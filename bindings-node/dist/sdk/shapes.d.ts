/** The id of a request. */
export type Id = string | number;
/** A JSON-RPC message, as the SDKs pass it. */
export interface Message {
    jsonrpc: '2.0';
    id?: Id | undefined;
    method?: string;
    params?: any;
    result?: any;
    error?: {
        code: number;
        message: string;
        data?: unknown;
    };
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
