import { isMainThread } from 'node:worker_threads';
import { Completers, completionAnswer } from './complete';
import { Context } from './context';
import type {
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    RunOptions,
    RunReport,
    ServerOptions,
    ToolDefinition
} from './definitions';
import { guarded, McpError, ProtocolError, ToolError } from './errors';
import { Link, type Outbound, type Receiver } from './link';
import { native, type NativeLink, type NativeOffer } from './native';
import type { Trace } from './protocol';
import { promptAnswer, refuse, resourceAnswer, toolAnswer } from './results';
import type { PromptOutput, ResourceOutput, ToolOutput } from './results';
import { describe, readSchema, type Check } from './schema';

type Awaitable<T> = T | Promise<T>;
type Handler = (args: any, context: Context<any>) => unknown;
type Answer = [kind: Outbound, text: string];

/** One entry of the registry: how to call it and how to say what it gave. */
interface Entry {
    what: string;
    isTool: boolean;
    /** The number of a tool with an output schema, counted from one: what it gives back is held against it. */
    checked?: number;
    call: Handler;
    answer: (value: unknown, args: any) => Answer;
}

/** Tools, resources, templates, prompts, completions: counted as the engine's operations are. */
const LISTS = 5;
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** A server: what it offers, and the handlers of it. */
export class Server<State = undefined> {
    readonly #offer: NativeOffer;
    readonly #completers = new Completers();
    readonly #entries: Entry[][] = [
        [],
        [],
        [],
        [],
        [
            {
                what: 'completion',
                isTool: false,
                call: (params, context) => this.#completers.call(params, context),
                answer: value => completionAnswer(value as readonly string[])
            }
        ]
    ];
    readonly #options: ServerOptions<State>;
    readonly #links = new Set<Link>();

    constructor(name: string, version: string, options: ServerOptions<State> = {}) {
        const { instructions, pageSize, cacheLists, extensions, stateKey } = options;
        const offered = {
            listChanges: options.listChanges ?? false,
            subscriptions: options.subscriptions ?? false,
            cacheIsPublic: cacheLists?.scope === 'public',
            ...(instructions !== undefined && { instructions }),
            ...(pageSize !== undefined && { pageSize }),
            ...(cacheLists && { cacheMs: cacheLists.ms }),
            ...(extensions && { extensions: JSON.stringify(Object.entries(extensions)) }),
            ...(stateKey && { stateKey })
        };
        this.#offer = guarded(() => new native.Offer(name, version, offered));
        this.#options = options;
    }

    /** Adds a tool. Arguments that break its schema never reach the handler. */
    tool<Args = Record<string, any>>(
        name: string,
        definition: ToolDefinition<Args>,
        handler: (args: Args, context: Context<State>) => Awaitable<ToolOutput>
    ): this {
        const { inputSchema, outputSchema, ...rest } = definition;
        const { json, check } = inputSchema ? readSchema(inputSchema) : {};
        const schemas = {
            ...(inputSchema && { inputSchema: json }),
            ...(outputSchema && { outputSchema: readSchema(outputSchema, 'output').json })
        };
        const number = this.#add('tool', { name, ...rest, ...schemas });
        const call = check ? checked(handler, check) : handler;
        const entry = { what: `tool ${name}`, isTool: true, call, answer: toolAnswer };
        this.#entries[0]![number] = outputSchema ? { ...entry, checked: number + 1 } : entry;
        return this;
    }

    /** Adds a resource. */
    resource(
        uri: string,
        definition: ResourceDefinition,
        handler: (uri: string, context: Context<State>) => Awaitable<ResourceOutput>
    ): this {
        const number = this.#add('resource', { uri, ...definition });
        this.#entries[1]![number] = {
            what: `resource ${uri}`,
            isTool: false,
            call: handler,
            answer: (value, at) => resourceAnswer(value, at, definition.mimeType)
        };
        return this;
    }

    /** Adds resources by URI template; the handler takes the URI and the template's variables. */
    resourceTemplate(
        template: string,
        definition: ResourceTemplateDefinition<State>,
        handler: (uri: string, variables: Record<string, string>, context: Context<State>) => Awaitable<ResourceOutput>
    ): this {
        const { complete = {}, ...rest } = definition;
        const completers = Object.entries(complete);
        const number = this.#add('template', { uri: template, ...rest, completes: completers.length > 0 });
        this.#completers.add('resource', template, completers);
        this.#entries[2]![number] = {
            what: `resource template ${template}`,
            isTool: false,
            call: ([uri, variables]: [string, Record<string, string>], context) => handler(uri, variables, context),
            answer: (value, [uri]) => resourceAnswer(value, uri, definition.mimeType)
        };
        return this;
    }

    /** Adds a prompt. */
    prompt(
        name: string,
        definition: PromptDefinition<State>,
        handler: (args: Record<string, string>, context: Context<State>) => Awaitable<PromptOutput>
    ): this {
        const completers = (definition.arguments ?? []).map(({ name, complete }) => [name, complete] as const);
        const completes = completers.some(([, complete]) => complete);
        const number = this.#add('prompt', { name, ...definition, completes });
        this.#completers.add('prompt', name, completers);
        this.#entries[3]![number] = { what: `prompt ${name}`, isTool: false, call: handler, answer: promptAnswer };
        return this;
    }

    /** Takes a tool away; whether there was one. Calls under way are finished. Needs `listChanges` once it runs. */
    removeTool(name: string): boolean {
        return guarded(() => this.#offer.removeTool(name));
    }

    /** Takes a resource away; whether there was one. */
    removeResource(uri: string): boolean {
        return guarded(() => this.#offer.removeResource(uri));
    }

    /** Takes a template away; whether there was one. */
    removeResourceTemplate(template: string): boolean {
        return guarded(() => this.#offer.removeTemplate(template));
    }

    /** Takes a prompt away; whether there was one. */
    removePrompt(name: string): boolean {
        return guarded(() => this.#offer.removePrompt(name));
    }

    /** Tells the clients that subscribed to it that a resource is another now. */
    resourceUpdated(uri: string | URL): void {
        this.#offer.resourceUpdated(String(uri));
    }

    #add(kind: 'tool' | 'resource' | 'template' | 'prompt', definition: object): number {
        return guarded(() => this.#offer[kind](JSON.stringify(definition)));
    }

    /**
     * Serves on stdin and stdout until the client goes away, a signal comes or `close` is called. Meanwhile what else
     * the process prints goes to stderr.
     */
    async run(options: RunOptions = {}): Promise<RunReport> {
        const state = await this.#start();
        const unheard = () => isMainThread && SIGNALS.every(signal => process.listenerCount(signal) === 0);
        const signals = options.signals ?? unheard();
        // The engine, which also hears a signal while the loop is busy, passes it on to the handler it found: that must
        // be this one and not Node's own, which ends the process.
        const stop = () => this.close();
        if (signals) for (const signal of SIGNALS) process.on(signal, stop);
        const report = await new Promise<string>((resolve, reject) => {
            const { graceMs = 5000, trace } = options;
            const connect = (wake: () => void) =>
                guarded(() => native.serveStdio(this.#offer, wake, graceMs, signals, trace !== undefined));
            try {
                this.#serve(state, resolve, connect, trace);
            } catch (error) {
                reject(error);
            }
        })
            .then(JSON.parse)
            .finally(() => SIGNALS.forEach(signal => process.off(signal, stop)));
        await this.#options.lifespan?.stop?.(state);
        if (report.error !== undefined) throw new McpError('ERR_MCP_IO', report.error);
        // A handler that never answers must not keep a process that nobody talks to.
        if (report.unanswered > 0) setTimeout(() => process.exit(), 20).unref();
        return report;
    }

    /** Ends every connection in good order: what is in flight may still be answered. */
    close(): void {
        for (const link of this.#links) link.native.stop();
    }

    /** @internal A client of this server in the same process. */
    async connect(client: Link, join: (offer: NativeOffer, wake: () => void) => [NativeLink, NativeLink]): Promise<void> {
        const state = await this.#start();
        const link = this.#serve(state, () => this.#options.lifespan?.stop?.(state));
        try {
            const [own, theirs] = join(this.#offer, link.wake);
            link.attach(own);
            client.attach(theirs);
        } catch (error) {
            link.abandon();
            throw error;
        }
    }

    async #start(): Promise<State> {
        return (await this.#options.lifespan?.start()) as State;
    }

    #serve(state: State, ended: (report: string) => void, connect?: (wake: () => void) => NativeLink, trace?: Trace): Link {
        const calls: (Context<State> | undefined)[] = [];
        let wasClosed = false;
        const receiver: Receiver = {
            call: (number, target, text, wantsProgress) => {
                const context = new Context(link, number, wantsProgress, state, text);
                calls[number] = context;
                this.#carryOut(this.#entries[target % LISTS]![Math.floor(target / LISTS)]!, text, context);
            },
            cancelled: (number, reason) => calls[number]?.cancel(reason),
            initialized: text => {
                const { revision, peer: info, capabilities = {} } = JSON.parse(text);
                this.#options.onInitialized?.({ revision, info, capabilities });
            },
            rootsChanged: () => this.#options.onRootsChanged?.(),
            closed: reason => {
                if (!wasClosed) this.#options.onClosed?.(reason);
                wasClosed = true;
            },
            traced: (isOut, text) => trace!(isOut ? 'out' : 'in', text),
            ended: report => {
                this.#links.delete(link);
                ended(report);
            }
        };
        const link: Link = new Link(receiver, connect);
        this.#links.add(link);
        return link;
    }

    #carryOut(entry: Entry, text: string, context: Context<State>): void {
        try {
            const args = text === '' ? {} : JSON.parse(text);
            const made = entry.call(args, context);
            if (typeof (made as Promise<unknown> | undefined)?.then === 'function') {
                (made as Promise<unknown>).then(
                    value => this.#settle(entry, args, context, value),
                    error => this.#fail(entry, context, error)
                );
            } else {
                this.#settle(entry, args, context, made);
            }
        } catch (error) {
            this.#fail(entry, context, error);
        }
    }

    #settle(entry: Entry, args: unknown, context: Context<State>, value: unknown): void {
        if (!context.isLive) return;
        try {
            const [kind, text] = entry.answer(value, args);
            context.answer(kind, text, 0, entry.checked);
        } catch (error) {
            this.#fail(entry, context, error);
        }
    }

    #fail(entry: Entry, context: Context<State>, error: unknown): void {
        // What a handler throws because it was cancelled is no news.
        if (!context.isLive) return;
        refuse(context, error, entry.isTool);
        const { onError } = this.#options;
        if (onError) onError(error, entry.what);
        else if (!(error instanceof ToolError || error instanceof ProtocolError)) console.error(`mcpbolt: ${entry.what} failed:`, error);
    }
}

/** A handler behind a library's own check of the arguments. */
function checked(handler: Handler, check: Check): Handler {
    return (args, context) => {
        const outcome = check(args);
        const go = (result: Awaited<typeof outcome>) => {
            if (result.issues) throw new ToolError(`invalid arguments: ${describe(result.issues)}`);
            return handler(result.value, context);
        };
        return outcome instanceof Promise ? outcome.then(go) : go(outcome);
    };
}
