import { fileURLToPath } from 'node:url';
import { lookedAt, type Hooks } from './approval';
import { answered, attempted, type Steps } from './attempt';
import { print, type Report } from './carry';
import { Completers, completionAnswer } from './complete';
import type { Context } from './context';
import type {
    JwtKey,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ServerOptions,
    ToolDefinition
} from './definitions';
import { guarded, ToolError } from './errors';
import type { Outbound } from './link';
import { native, type NativeEncoded, type NativeEntries } from './native';
import { settingsJson } from './numbers';
import { objectAnswer, promptAnswer, resourceAnswer, structuredAnswer, toolAnswer } from './results';
import type { PromptOutput, ResourceOutput, ToolOutput } from './results';
import { describe, readSchema, type Check, type Described } from './schema';
import { skillFolders } from './skillfolders';

type Awaitable<T> = T | Promise<T>;
type Handler = (args: any, context: Context<any>, steps: Steps) => unknown;
type Answer = [kind: Outbound, text: string];

/** @internal One entry of the registry: how to call it, and how to encode its result. */
export interface Entry {
    what: string;
    isTool: boolean;
    /**
     * The number of a tool with an output schema, counted from one: the engine validates the tool's results against it.
     */
    checked?: number;
    call: (args: any, context: Context<any>) => unknown;
    answer: (value: unknown, args: any) => Answer;
}

/** In the order of the engine's operations. */
const enum Kind {
    Tool,
    Resource,
    Template,
    Prompt,
    Completion,
    Method
}

const KINDS = 6;

/**
 * The tools, resources, prompts and other entries of a server. Add them before it runs, or later with `listChanges`.
 */
export abstract class Entries<State> {
    /** @internal */
    readonly entries: NativeEntries;
    readonly #hooks: Hooks;
    readonly #report: Report;
    readonly #completers = new Completers();
    /** Entries by the number of the engine's operation; numbers are not reused. */
    readonly #entries = new Map<number, Entry>();

    /** @internal */
    protected constructor(name: string, version: string, options: ServerOptions<State>) {
        this.#hooks = options;
        this.#report = options.onError ?? print;
        const { audit } = options.policy ?? {};
        const told = audit && ((event: string) => audit(JSON.parse(event)));
        const { lifespan, approval, sanitise, integers, delegate, stateKey, ...rest } = options;
        const settings = settingsJson({ name, version, ...rest, stateKey: stateKey && [...stateKey] });
        const hooked = [approval, sanitise].flatMap(hooks => Object.keys(hooks ?? {}));
        this.entries = guarded(() => new native.Entries(settings, hooked, delegate && JSON.stringify(delegate), told));
        this.#enter(Kind.Completion, 0, {
            what: 'completion',
            isTool: false,
            call: (params, context) => this.#completers.call(params, context),
            answer: value => completionAnswer(value as readonly string[])
        });
    }

    /**
     * Replaces the keys of `policy.jwt`, by their `kid`, from the next token on. To rotate keys without refusing any
     * client, first pass the old and the new key, then only the new one once the last token of the old key has expired.
     * Throws `ERR_MCP_MISUSE` if the policy verifies no tokens, a key does not fit its algorithm, or no key is given;
     * the old keys then stay.
     */
    replaceJwtKeys(keys: Readonly<Record<string, JwtKey>>): void {
        guarded(() => this.entries.replaceJwtKeys(JSON.stringify(keys)));
    }

    /** @internal The entry for the engine's number, unless it was removed. */
    entry(target: number): Entry | undefined {
        return this.#entries.get(target);
    }

    /** Adds a tool. The handler is called only with arguments that fit the schema, whose type they have. */
    tool<S extends object>(
        name: string,
        definition: Omit<ToolDefinition, 'inputSchema'> & { inputSchema: S },
        handler: (args: Described<S>, context: Context<State>, steps: Steps) => Awaitable<ToolOutput>
    ): this;
    /** Adds a tool whose arguments have a type of your own. */
    tool<Args = Record<string, any>>(
        name: string,
        definition: ToolDefinition,
        handler: (args: Args, context: Context<State>, steps: Steps) => Awaitable<ToolOutput>
    ): this;
    tool(name: string, definition: ToolDefinition, handler: (args: any, context: Context<State>, steps: Steps) => Awaitable<ToolOutput>): this {
        const { inputSchema, outputSchema, kept, ...rest } = definition;
        const { json, check } = inputSchema ? readSchema(inputSchema) : {};
        const schemas = {
            ...(kept && { cacheTtl: kept.ttl }),
            ...(inputSchema && { inputSchema: json }),
            ...(outputSchema && { outputSchema: readSchema(outputSchema, 'output').json })
        };
        const number = guarded(() => this.entries.tool(settingsJson({ name, ...rest, ...schemas })));
        const misfit = (json: string) => this.entries.misfit(number, json);
        const what = `tool ${name}`;
        const answer = outputSchema ? structuredAnswer : toolAnswer;
        const isGood = (made: NativeEncoded) => this.entries.isGood(number, made);
        const failed = (error: unknown) => this.#report(error, what);
        const care = { atomic: rest.atomic, kept, answer, isGood, failed };
        const attempt = attempted(name, check ? checked(handler, check) : handler, care);
        const call = lookedAt(name, this.#hooks, attempt, misfit);
        const entry = { what, isTool: true, call, answer: kept || rest.atomic ? answered(answer) : answer };
        return this.#enter(Kind.Tool, number, outputSchema ? { ...entry, checked: number + 1 } : entry);
    }

    /** Adds a resource. */
    resource(
        uri: string,
        definition: ResourceDefinition,
        handler: (uri: string, context: Context<State>) => Awaitable<ResourceOutput>
    ): this {
        const number = guarded(() => this.entries.resource(settingsJson({ uri, ...definition })));
        return this.#enter(Kind.Resource, number, {
            what: `resource ${uri}`,
            isTool: false,
            call: handler,
            answer: (value, at) => resourceAnswer(value, at, definition.mimeType)
        });
    }

    /** Adds resources by URI template; the handler gets the URI and the values of the template's variables. */
    resourceTemplate(
        template: string,
        definition: ResourceTemplateDefinition<State>,
        handler: (uri: string, variables: Record<string, string>, context: Context<State>) => Awaitable<ResourceOutput>
    ): this {
        const { complete = {}, ...rest } = definition;
        const completers = Object.entries(complete);
        const json = JSON.stringify({ uri: template, ...rest });
        const number = guarded(() => this.entries.template(json, completers.length > 0));
        this.#completers.add('resource', template, completers);
        return this.#enter(Kind.Template, number, {
            what: `resource template ${template}`,
            isTool: false,
            call: ([uri, variables]: [string, Record<string, string>], context) => handler(uri, variables, context),
            answer: (value, [uri]) => resourceAnswer(value, uri, definition.mimeType)
        });
    }

    /** Adds a prompt. */
    prompt(
        name: string,
        definition: PromptDefinition<State>,
        handler: (args: Record<string, string>, context: Context<State>) => Awaitable<PromptOutput>
    ): this {
        const completers = (definition.arguments ?? []).map(({ name, complete }) => [name, complete] as const);
        const completes = completers.some(([, complete]) => complete !== undefined);
        const number = guarded(() => this.entries.prompt(JSON.stringify({ name, ...definition }), completes));
        this.#completers.add('prompt', name, completers);
        return this.#enter(Kind.Prompt, number, { what: `prompt ${name}`, isTool: false, call: handler, answer: promptAnswer });
    }

    /**
     * Adds a method of an extension in the `extensions` option. Clients that declared the extension may call it, from
     * 2026-07-28 on; other clients get an error that names the extension to declare. The handler gets the params, and
     * returns an object.
     */
    extensionMethod<Params = Record<string, any>>(
        extension: string,
        method: string,
        handler: (params: Params, context: Context<State>) => Awaitable<object>
    ): this {
        const number = guarded(() => this.entries.method(extension, method));
        return this.#enter(Kind.Method, number, { what: `method ${method}`, isTool: false, call: handler, answer: objectAnswer });
    }

    /**
     * Adds the skill in a folder, or every skill below it: folders with a `SKILL.md`. Their files are read now; files
     * that begin with a dot are skipped. The path between `folder` and a skill becomes part of the skill's URI.
     */
    skills(folder: string | URL): this {
        const path = folder instanceof URL ? fileURLToPath(folder) : folder;
        for (const { manifest, within, files } of skillFolders(path)) guarded(() => this.entries.skill(manifest, within, files));
        return this;
    }

    /**
     * Removes a tool and returns whether it existed. Calls in progress finish. Needs `listChanges` once the server
     * runs.
     */
    removeTool(name: string): boolean {
        return this.#remove(Kind.Tool, () => this.entries.removeTool(name));
    }

    /** Removes a resource and returns whether it existed. */
    removeResource(uri: string): boolean {
        return this.#remove(Kind.Resource, () => this.entries.removeResource(uri));
    }

    /** Removes a resource template and returns whether it existed. */
    removeResourceTemplate(template: string): boolean {
        const removed = this.#remove(Kind.Template, () => this.entries.removeTemplate(template));
        this.#completers.remove('resource', template);
        return removed;
    }

    /** Removes a prompt and returns whether it existed. */
    removePrompt(name: string): boolean {
        const removed = this.#remove(Kind.Prompt, () => this.entries.removePrompt(name));
        this.#completers.remove('prompt', name);
        return removed;
    }

    /** Notifies the clients that subscribed to a resource that it changed. Needs `subscriptions`. */
    resourceUpdated(uri: string | URL): void {
        guarded(() => this.entries.resourceUpdated(String(uri)));
    }

    #enter(kind: Kind, number: number, entry: Entry): this {
        this.#entries.set(number * KINDS + kind, entry);
        return this;
    }

    /** Deletes the entries that the engine no longer has; calls in progress already hold theirs. */
    #remove(kind: Kind, remove: () => boolean): boolean {
        const removed = guarded(remove);
        const isGone = (target: number) => target % KINDS === kind && !this.entries.has(target);
        if (removed) for (const target of this.#entries.keys()) if (isGone(target)) this.#entries.delete(target);
        return removed;
    }
}

/** Runs the schema library's own validation before the handler. */
function checked(handler: Handler, check: Check): Handler {
    return (args, context, steps) => {
        const outcome = check(args);
        const go = (result: Awaited<typeof outcome>) => {
            if (result.issues) throw new ToolError(`invalid arguments: ${describe(result.issues)}`);
            return handler(result.value, context, steps);
        };
        return outcome instanceof Promise ? outcome.then(go) : go(outcome);
    };
}
