import type { Client } from './client';
import type { FormRequest, FormResult, PageRequest, PageResult, Root, SamplingBlock, SamplingRequest, SamplingResult } from './protocol';
type Awaitable<T> = T | Promise<T>;
/** The context of a request that the server makes of the client. */
export interface Asked {
    /** Aborts when the server cancels the request; the handler's result is then discarded. */
    readonly signal: AbortSignal;
    /** The client that received the request. The handler may call the server through it, to any depth. */
    readonly client: Client;
}
/** The model's answer; a string is one text block. */
export interface SamplingOutput {
    content: string | SamplingBlock | SamplingBlock[];
    /** The model's name. */
    model: string;
    stopReason?: string;
    /** `assistant` by default. */
    role?: SamplingResult['role'];
    [more: string]: unknown;
}
/**
 * Handlers for requests of the server. The client declares the capabilities that it has handlers for; a server asks for
 * nothing else.
 */
export interface Answers {
    /**
     * Lets servers use the model. The handler decides what the model sees, and which part of its answer the server
     * gets.
     */
    onSampling?: (request: SamplingRequest, asked: Asked) => Awaitable<SamplingOutput>;
    /** Whether the handler can give the server's tools to the model. */
    samplingTools?: boolean;
    /** Lets servers show a form to the user. Accepted input is validated against the form before it is sent. */
    onElicitation?: (request: FormRequest, asked: Asked) => Awaitable<FormResult>;
    /** Lets servers ask the user to visit a page. */
    onElicitationUrl?: (request: PageRequest, asked: Asked) => Awaitable<PageResult>;
    /** Folders and files that servers should keep to, as `file://` URIs; `setRoots` replaces them later. */
    roots?: readonly (Root | string)[];
    /** Called with each exception of these handlers. By default they are printed to stderr, except `McpError`. */
    onError?: (error: unknown, what: string) => void;
}
export {};
