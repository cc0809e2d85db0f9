import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Id, type Message, type SdkTransport, type SendOptions } from './shapes';
/** The options of the SDKs' classes. */
export interface StreamableHTTPServerTransportOptions {
    /** Creates the session's id. Without it there is no session, and each POST is answered separately. */
    sessionIdGenerator?: (() => string) | undefined;
    /** Called before the client is told the id of its session. */
    onsessioninitialized?: (sessionId: string) => void;
    /** Called when the client has ended its session. */
    onsessionclosed?: (sessionId: string) => void;
    /** Whether the `Host` header must be one of `allowedHosts`. */
    enableDnsRebindingProtection?: boolean;
    allowedHosts?: string[];
    /**
     * Origins whose pages may send requests, always checked against the `Origin` header: `https://example.com`, or
     * `http://localhost:*` for any port; `*` allows any. By default the origins of this machine, and the server's own
     * origin.
     */
    allowedOrigins?: string[];
    /** Silence on a stream after which a comment keeps it open, in ms; 15 s by default. */
    keepAliveMs?: number;
    /** Maximum size of one message in bytes; 4 MiB by default. */
    maxRequestBodySize?: number;
    /** How soon a client should reconnect after its stream was closed, in ms; 1000 by default. */
    retryInterval?: number;
    /** Answers requests with JSON, never with a stream: notifications before the answer are dropped. */
    enableJsonResponse?: boolean;
    /** Supported by the SDK's own class only. */
    eventStore?: undefined;
}
/** The common part of both classes: one session of one client, or requests without a session. */
declare abstract class HttpServerTransport implements SdkTransport {
    #private;
    onclose?: () => void;
    onerror?: (error: Error) => void;
    onmessage?: (message: any, extra?: any) => void;
    /** The id of the session, once the client has opened it. */
    sessionId: string | undefined;
    constructor(options?: StreamableHTTPServerTransportOptions);
    /** Called by `connect()`. */
    start(): Promise<void>;
    /** Called by v2 before `start`. */
    setSupportedProtocolVersions(_: string[]): void;
    send(message: Message, options?: SendOptions): Promise<void>;
    /** Closes the event stream of a request; the client reconnects for the rest of the answer. */
    closeSSEStream(requestId: Id): void;
    /** Closes the session. */
    close(): Promise<void>;
}
/**
 * Streamable HTTP of revisions with a handshake, for a server of either SDK in an HTTP server of yours. Replaces v1's
 * class of this name and v2's `NodeStreamableHTTPServerTransport`. Each instance is one session. The engine stores what
 * a client missed; an event store is refused.
 */
export declare class StreamableHTTPServerTransport extends HttpServerTransport {
    /** Serves a request; resolves when it has been taken. Pass `parsedBody` if the body has already been read. */
    handleRequest(request: IncomingMessage & {
        auth?: unknown;
    }, response: ServerResponse, parsedBody?: unknown): Promise<void>;
}
export { StreamableHTTPServerTransport as NodeStreamableHTTPServerTransport };
/** Like `StreamableHTTPServerTransport`, for web-standard `Request`s. Replaces the class of this name of either SDK. */
export declare class WebStandardStreamableHTTPServerTransport extends HttpServerTransport {
    /** Serves a request. Pass `parsedBody` if the body has already been read. */
    handleRequest(request: Request, options?: {
        authInfo?: unknown;
        parsedBody?: unknown;
    }): Promise<Response>;
}
