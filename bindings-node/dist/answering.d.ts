import type { Client } from './client';
import type { FormRequest, FormResult, PageRequest, PageResult, Root, SamplingBlock, SamplingRequest, SamplingResult } from './protocol';
type Awaitable<T> = T | Promise<T>;
/** Something that the server asks, under way. */
export interface Asked {
    /** Aborted when the server gives up; what the handler gives back then is discarded. */
    readonly signal: AbortSignal;
    /** The server that asks. It may be called in turn, to any depth. */
    readonly client: Client;
}
/** What the model said; a text is one block of it. */
export interface SamplingOutput {
    content: string | SamplingBlock | SamplingBlock[];
    /** The model's name. */
    model: string;
    stopReason?: string;
    /** `assistant` by default. */
    role?: SamplingResult['role'];
    [more: string]: unknown;
}
/** What a client does for servers. A server is told of what there is a handler for, and asks for nothing else. */
export interface Answers {
    /** Lets servers ask the model. It decides what the model sees and what of its answer the server gets. */
    onSampling?: (request: SamplingRequest, asked: Asked) => Awaitable<SamplingOutput>;
    /** Whether the model may be given the server's tools. */
    samplingTools?: boolean;
    /** Lets servers show the user a form. What is accepted is held against the form before it is sent. */
    onElicitation?: (request: FormRequest, asked: Asked) => Awaitable<FormResult>;
    /** Lets servers send the user to a page. */
    onElicitationUrl?: (request: PageRequest, asked: Asked) => Awaitable<PageResult>;
    /** Folders and files that servers should keep to, by their `file://` URIs; `setRoots` replaces them later. */
    roots?: readonly (Root | string)[];
    /** Told of what these handlers throw; printed to stderr by default, `McpError`s excepted. */
    onError?: (error: unknown, what: string) => void;
}
export {};
