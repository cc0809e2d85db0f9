import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Id, type Message, type SdkTransport, type SendOptions } from './shapes';
/** As the SDKs' classes take them. */
export interface StreamableHTTPServerTransportOptions {
    /** Names the session; without it there is none, and each POST is answered by itself. */
    sessionIdGenerator?: (() => string) | undefined;
    /** Called before the client is told the name of its session. */
    onsessioninitialized?: (sessionId: string) => void;
    /** Called when the client has ended its session. */
    onsessionclosed?: (sessionId: string) => void;
    enableDnsRebindingProtection?: boolean;
    allowedHosts?: string[];
    allowedOrigins?: string[];
    /** Silence on a stream after which a comment keeps it open, in ms; 15 s by default. */
    keepAliveMs?: number;
    /** Most bytes of one message; 4 MiB by default. */
    maxRequestBodySize?: number;
    /** How soon a client is to come back whose stream was closed, in ms; 1000 by default. */
    retryInterval?: number;
    /** Requests are answered in JSON, never by a stream: what a handler reports before it is done is left out. */
    enableJsonResponse?: boolean;
    /** This is the SDK's own class's. */
    eventStore?: undefined;
}
/** What both classes have: one session of a client's, or requests without one. */
declare abstract class HttpServerTransport implements SdkTransport {
    #private;
    onclose?: () => void;
    onerror?: (error: Error) => void;
    onmessage?: (message: any, extra?: any) => void;
    /** The name of the session, once the client has opened it. */
    sessionId: string | undefined;
    constructor(options?: StreamableHTTPServerTransportOptions);
    /** Called by whoever connects to it. */
    start(): Promise<void>;
    /** v2 calls it before it starts. */
    setSupportedProtocolVersions(_: string[]): void;
    send(message: Message, options?: SendOptions): Promise<void>;
    /** Has the client of a request come back for the rest of its answer. */
    closeSSEStream(requestId: Id): void;
    /** Ends the session. */
    close(): Promise<void>;
}
/**
 * Streamable HTTP of revisions with a handshake, for a server of either SDK, within an HTTP server of yours: in place of
 * v1's class of that name and v2's `NodeStreamableHTTPServerTransport`. One is one session. What a client missed is kept
 * for it by the engine; an event store of yours is refused.
 */
export declare class StreamableHTTPServerTransport extends HttpServerTransport {
    /** Serves a request; resolves when it has been taken. `parsedBody` is for a body that has been read already. */
    handleRequest(request: IncomingMessage & {
        auth?: unknown;
    }, response: ServerResponse, parsedBody?: unknown): Promise<void>;
}
export { StreamableHTTPServerTransport as NodeStreamableHTTPServerTransport };
/** The same for requests of the web's standards: in place of the class of that name of either SDK. */
export declare class WebStandardStreamableHTTPServerTransport extends HttpServerTransport {
    /** Serves a request. `parsedBody` is for a body that has been read already. */
    handleRequest(request: Request, options?: {
        authInfo?: unknown;
        parsedBody?: unknown;
    }): Promise<Response>;
}
