import { type Message, type SdkTransport } from './shapes';
/** As the SDKs' classes take them. */
export interface StreamableHTTPClientTransportOptions {
    /** Headers of every request. */
    requestInit?: {
        headers?: HeadersInit;
    };
    /** The name of a session that has begun elsewhere. */
    sessionId?: string;
    /** These are the SDK's own class's. */
    authProvider?: undefined;
    fetch?: undefined;
    reconnectionOptions?: undefined;
    reconnectionScheduler?: undefined;
}
type HeadersInit = ConstructorParameters<typeof Headers>[0];
/** What goes along with a message. */
interface SendOptions {
    resumptionToken?: string | undefined;
    onresumptiontoken?: ((token: string) => void) | undefined;
    headers?: Readonly<Record<string, string>> | undefined;
    requestSignal?: AbortSignal | undefined;
    onRequestStreamEnd?: (() => void) | undefined;
}
/** A message that was not carried. */
export declare class StreamableHTTPError extends Error {
    /** The status of the answer, if there was one. */
    readonly code: number | undefined;
}
/**
 * A server over Streamable HTTP, for a client of either SDK: in place of the SDK's own class of that name. Streams are
 * resumed by the engine. Who has to sign in by OAuth uses the SDK's own class.
 */
export declare class StreamableHTTPClientTransport implements SdkTransport {
    #private;
    onclose?: () => void;
    onerror?: (error: Error) => void;
    onmessage?: (message: any, extra?: any) => void;
    /** A request has a stream of its own, whose end gives it up: v2 asks for that. */
    readonly hasPerRequestStream = true;
    constructor(url: URL | string, options?: StreamableHTTPClientTransportOptions);
    /** The name of the session, once the server has given one. */
    get sessionId(): string | undefined;
    get protocolVersion(): string | undefined;
    /** The revision of what is sent from now on. */
    setProtocolVersion(version: string): void;
    /** Begins to carry messages; called by whoever connects to it. */
    start(): Promise<void>;
    /** Sends a message; resolves when nothing more comes of it. */
    send(message: Message, options?: SendOptions): Promise<void>;
    /** Goes on with a stream behind what was read of it. */
    resumeStream(lastEventId: string, options?: {
        onresumptiontoken?: (token: string) => void;
    }): Promise<void>;
    /** Ends the session on the server. */
    terminateSession(): Promise<void>;
    /** Ends it; what is under way is given up. */
    close(): Promise<void>;
}
export {};
