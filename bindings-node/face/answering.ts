import { McpError } from './errors';
import { Failures } from './failures';
import type { Link } from './link';
import type { Logger } from './logger';
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

/** The context of a request that the server makes of the client. */
export interface AskedOf<Client> {
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
export interface AnswersOf<Client> {
    /**
     * Lets servers use the model. The handler decides what the model sees, and which part of its answer the server
     * gets.
     */
    onSampling?: (request: SamplingRequest, asked: AskedOf<Client>) => Awaitable<SamplingOutput>;
    /** Whether the handler can give the server's tools to the model. */
    samplingTools?: boolean;
    /** Lets servers show a form to the user. Accepted input is validated against the form before it is sent. */
    onElicitation?: (request: FormRequest, asked: AskedOf<Client>) => Awaitable<FormResult>;
    /** Lets servers ask the user to visit a page. */
    onElicitationUrl?: (request: PageRequest, asked: AskedOf<Client>) => Awaitable<PageResult>;
    /** Folders and files that servers should keep to, as `file://` URIs; `setRoots` replaces them later. */
    roots?: readonly (Root | string)[];
    /**
     * Where exceptions of these handlers are logged, except `McpError`: see `ServerOptions.logger`. By default they are
     * printed to stderr, unless there is an `onError`.
     */
    logger?: Logger;
    /** Called with each exception of these handlers, and its name. */
    onError?: (error: unknown, what: string) => unknown;
}

/** In the order of the numbers in `src/questions.rs`. */
const TOPICS = ['onSampling', 'onElicitation', 'onElicitationUrl'] as const;

/** @internal */
export function rootsOf(roots: readonly (Root | string)[]): Root[] {
    return roots.map(root => (typeof root === 'string' ? { uri: root } : root));
}

/** @internal Requests of the server that are not yet answered. */
export class Answering {
    readonly #link: () => Link;
    readonly #failures: Failures;
    readonly #under = new Map<number, AbortController>();

    constructor(private readonly answers: AnswersOf<any>, private readonly client: unknown, link: () => Link) {
        this.#link = link;
        this.#failures = new Failures(answers.onError, answers.logger);
    }

    async asked(number: number, topic: number, text: string): Promise<void> {
        const what = TOPICS[topic]!;
        const handler = this.answers[what] as (request: unknown, asked: AskedOf<unknown>) => unknown;
        const controller = new AbortController();
        this.#under.set(number, controller);
        try {
            const result = await handler(readJson(text, this.#link().integers), { signal: controller.signal, client: this.client });
            if (result === undefined) throw new TypeError('the handler returned nothing');
            const json = writeJson(what === 'onSampling' ? sampled(result as SamplingOutput) : result)!;
            this.#link().native.answer(number, true, json);
        } catch (error) {
            // A handler that throws because it was aborted is not reported.
            if (!controller.signal.aborted) this.#fail(number, error, what);
        } finally {
            this.#under.delete(number);
        }
    }

    withdrawn(number: number): void {
        this.#under.get(number)?.abort(new DOMException('the server withdrew its request', 'AbortError'));
    }

    #fail(number: number, error: unknown, what: string): void {
        const isMeant = error instanceof McpError;
        this.#link().native.answer(number, false, isMeant ? error.message : 'the handler failed unexpectedly');
        if (isMeant) this.#failures.tell(error, what);
        else this.#failures.report(error, what);
    }
}

function sampled({ role = 'assistant', content, ...rest }: SamplingOutput): SamplingResult {
    const blocks = typeof content === 'string' ? { type: 'text' as const, text: content } : content;
    return { ...rest, role, content: blocks };
}
