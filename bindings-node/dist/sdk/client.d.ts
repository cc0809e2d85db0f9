import { type Message, type SdkTransport } from './shapes';
/** The options of the SDKs' classes. */
export interface StreamableHTTPClientTransportOptions {
    /** Headers of every request. */
    requestInit?: {
        headers?: HeadersInit;
    };
    /** The id of a session that was opened earlier. */
    sessionId?: string;
    /** Supported by the SDK's own class only; likewise the next three. */
    authProvider?: undefined;
    fetch?: undefined;
    reconnectionOptions?: undefined;
    reconnectionScheduler?: undefined;
}
type HeadersInit = ConstructorParameters<typeof Headers>[0];
/** Options of one message. */
interface SendOptions {
    resumptionToken?: string | undefined;
    onresumptiontoken?: ((token: string) => void) | undefined;
    headers?: Readonly<Record<string, string>> | undefined;
    requestSignal?: AbortSignal | undefined;
    onRequestStreamEnd?: (() => void) | undefined;
}
/** A message could not be delivered. */
export declare class StreamableHTTPError extends Error {
    /** The HTTP status of the answer, if there was one. */
    readonly code: number | undefined;
}
/**
 * A Streamable HTTP transport for a client of either SDK. Replaces the SDK's own class of this name. The engine resumes
 * streams. For OAuth, use the SDK's own class.
 */
export declare class StreamableHTTPClientTransport implements SdkTransport {
    #private;
    onclose?: () => void;
    onerror?: (error: Error) => void;
    onmessage?: (message: any, extra?: any) => void;
    /** Each request has a stream of its own, and closing the stream cancels the request; read by v2. */
    readonly hasPerRequestStream = true;
    constructor(url: URL | string, options?: StreamableHTTPClientTransportOptions);
    /** The id of the session, once the server has assigned one. */
    get sessionId(): string | undefined;
    get protocolVersion(): string | undefined;
    /** Sets the protocol revision of messages sent from now on. */
    setProtocolVersion(version: string): void;
    /** Starts to carry messages; called by `connect()`. */
    start(): Promise<void>;
    /** Sends a message; resolves when its exchange has ended. */
    send(message: Message, options?: SendOptions): Promise<void>;
    /** Resumes a stream after the last event that was read. */
    resumeStream(lastEventId: string, options?: {
        onresumptiontoken?: (token: string) => void;
    }): Promise<void>;
    /** Ends the session on the server. */
    terminateSession(): Promise<void>;
    /** Closes the transport; pending requests are cancelled. */
    close(): Promise<void>;
}
export {};
