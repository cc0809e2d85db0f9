import type { Client } from './client';
import { McpError } from './errors';
import type { Link } from './link';
import { readJson, writeJson } from './numbers';
import type {
    FormRequest,
    FormResult,
    PageRequest,
    PageResult,
    Root,
    SamplingBlock,
    SamplingRequest,
    SamplingResult
} from './protocol';

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

/** By the numbers of `src/questions.rs`. */
const TOPICS = ['onSampling', 'onElicitation', 'onElicitationUrl'] as const;

/** @internal */
export function rootsJson(roots: readonly (Root | string)[]): string {
    return JSON.stringify(roots.map(root => (typeof root === 'string' ? { uri: root } : root)));
}

/** @internal What the server asks and is not yet answered. */
export class Answering {
    readonly #answers: Answers;
    readonly #client: () => Client;
    readonly #link: () => Link;
    readonly #under = new Map<number, AbortController>();

    constructor(answers: Answers, client: () => Client, link: () => Link) {
        this.#answers = answers;
        this.#client = client;
        this.#link = link;
    }

    async asked(number: number, topic: number, text: string): Promise<void> {
        const what = TOPICS[topic]!;
        const handler = this.#answers[what] as (request: unknown, asked: Asked) => unknown;
        const controller = new AbortController();
        this.#under.set(number, controller);
        try {
            const result = await handler(readJson(text, this.#link().integers), { signal: controller.signal, client: this.#client() });
            if (result === undefined) throw new TypeError('the handler gave nothing back');
            const json = writeJson(what === 'onSampling' ? sampled(result as SamplingOutput) : result)!;
            this.#link().native.answer(number, true, json);
        } catch (error) {
            // What a handler throws because it was aborted is no news.
            if (!controller.signal.aborted) this.#fail(number, error, what);
        } finally {
            this.#under.delete(number);
        }
    }

    withdrawn(number: number): void {
        this.#under.get(number)?.abort(new DOMException('the server does not ask any more', 'AbortError'));
    }

    #fail(number: number, error: unknown, what: string): void {
        const isMeant = error instanceof McpError;
        this.#link().native.answer(number, false, isMeant ? error.message : 'the handler failed unexpectedly');
        if (this.#answers.onError) this.#answers.onError(error, what);
        else if (!isMeant) console.error(`mcpbolt: ${what} failed:`, error);
    }
}

function sampled({ role = 'assistant', content, ...rest }: SamplingOutput): SamplingResult {
    const blocks = typeof content === 'string' ? { type: 'text' as const, text: content } : content;
    return { ...rest, role, content: blocks };
}
