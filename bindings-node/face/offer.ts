import { fileURLToPath } from 'node:url';
import { Completers, completionAnswer } from './complete';
import type { Context } from './context';
import type {
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ServerOptions,
    ToolDefinition
} from './definitions';
import { guarded, ToolError } from './errors';
import type { Outbound } from './link';
import { native, type NativeOffer, type NativeOfferOptions } from './native';
import { objectAnswer, promptAnswer, resourceAnswer, toolAnswer } from './results';
import type { PromptOutput, ResourceOutput, ToolOutput } from './results';
import { describe, readSchema, type Check } from './schema';
import { skillFolders } from './skillfolders';

type Awaitable<T> = T | Promise<T>;
type Handler = (args: any, context: Context<any>) => unknown;
type Answer = [kind: Outbound, text: string];

/** @internal One entry of the registry: how to call it and how to say what it gave. */
export interface Entry {
    what: string;
    isTool: boolean;
    /** The number of a tool with an output schema, counted from one: what it gives back is held against it. */
    checked?: number;
    call: Handler;
    answer: (value: unknown, args: any) => Answer;
}

/** Tools, resources, templates, prompts, completions, methods of extensions: counted as the engine's operations are. */
const LISTS = 6;

/** What a server offers: before it runs, or later with `listChanges`. */
export abstract class Offer<State> {
    /** @internal */
    readonly offer: NativeOffer;
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
        ],
        []
    ];

    /** @internal */
    protected constructor(name: string, version: string, options: ServerOptions<State>) {
        this.offer = guarded(() => new native.Offer(name, version, offered(options)));
    }

    /** @internal The entry that the engine means. */
    entry(target: number): Entry {
        return this.#entries[target % LISTS]![Math.floor(target / LISTS)]!;
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

    /**
     * Adds a method of an extension that the options name. Clients that declared the extension may call it, from
     * 2026-07-28 on; others are told what to declare. The handler takes the params, and gives an object.
     */
    extensionMethod<Params = Record<string, any>>(
        extension: string,
        method: string,
        handler: (params: Params, context: Context<State>) => Awaitable<object>
    ): this {
        const number = guarded(() => this.offer.method(extension, method));
        this.#entries[5]![number] = { what: `method ${method}`, isTool: false, call: handler, answer: objectAnswer };
        return this;
    }

    /**
     * Adds the skill in a folder, or all those below it: folders with a `SKILL.md`. Their files are read now, those that
     * begin with a dot left out; what lies between becomes part of a skill's URI.
     */
    skills(folder: string | URL): this {
        const path = folder instanceof URL ? fileURLToPath(folder) : folder;
        for (const { manifest, within, files } of skillFolders(path)) guarded(() => this.offer.skill(manifest, within, files));
        return this;
    }

    /** Takes a tool away; whether there was one. Calls under way are finished. Needs `listChanges` once it runs. */
    removeTool(name: string): boolean {
        return guarded(() => this.offer.removeTool(name));
    }

    /** Takes a resource away; whether there was one. */
    removeResource(uri: string): boolean {
        return guarded(() => this.offer.removeResource(uri));
    }

    /** Takes a template away; whether there was one. */
    removeResourceTemplate(template: string): boolean {
        return guarded(() => this.offer.removeTemplate(template));
    }

    /** Takes a prompt away; whether there was one. */
    removePrompt(name: string): boolean {
        return guarded(() => this.offer.removePrompt(name));
    }

    /** Tells the clients that subscribed to it that a resource is another now. */
    resourceUpdated(uri: string | URL): void {
        this.offer.resourceUpdated(String(uri));
    }

    #add(kind: 'tool' | 'resource' | 'template' | 'prompt', definition: object): number {
        return guarded(() => this.offer[kind](JSON.stringify(definition)));
    }
}

function offered(options: ServerOptions<any>): NativeOfferOptions {
    const { instructions, pageSize, cacheLists, extensions, stateKey, taskLimits: tasks } = options;
    return {
        listChanges: options.listChanges ?? false,
        subscriptions: options.subscriptions ?? false,
        cacheIsPublic: cacheLists?.scope === 'public',
        ...(instructions !== undefined && { instructions }),
        ...(pageSize !== undefined && { pageSize }),
        ...(cacheLists && { cacheMs: cacheLists.ms }),
        ...(extensions && { extensions: JSON.stringify(Object.entries(extensions)) }),
        ...(stateKey && { stateKey }),
        ...(tasks && { tasks })
    };
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
