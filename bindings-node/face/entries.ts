import { fileURLToPath } from 'node:url';
import type { Hooks } from './approval';
import { answered, attempted, type Steps } from './attempt';
import { auditing } from './audit';
import type { Middleware } from './call';
import { Completers, completionAnswer, completionReply, type CompletionParams } from './complete';
import type { Context } from './context';
import type {
    JwtKey,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ServerOptions,
    ToolDefinition
} from './definitions';
import { Kind, KINDS, WORDS, type Entry, type Offered } from './entry';
import { guarded, McpError, ToolError } from './errors';
import { Failures, within } from './failures';
import { weakly } from './kept';
import { layered } from './layers';
import { LISTED } from './listed';
import { native, type NativeEncoded, type NativeEntries } from './native';
import { settingsJson } from './numbers';
import { Prefix } from './prefix';
import { promptReply, resourceReply, toolReply } from './replies';
import { objectAnswer, promptAnswer, resourceAnswer, structuredAnswer, toolAnswer } from './results';
import type { PromptOutput, ResourceOutput, ToolOutput } from './results';
import { describe, readSchema, type Check, type Described } from './schema';
import { skillFolders } from './skillfolders';
import { telemetry } from './telemetry';
import { after } from './thenable';
import { Verifying } from './verifier';

type Awaitable<T> = T | Promise<T>;
type Handler = (args: any, context: Context<any>, steps: Steps) => unknown;

/** A server at a prefix of another one. */
interface Mount {
    outer: Entries<any>;
    prefix: Prefix;
    server: Entries<any>;
}

/**
 * The tools, resources, prompts and other entries of a server. Add them before it runs, or later with `listChanges`.
 */
export abstract class Entries<State> {
    /** @internal */
    readonly entries: NativeEntries;
    /** @internal */
    readonly failures: Failures;
    readonly #name: string;
    readonly #hooks: Hooks;
    readonly #options: ServerOptions<any>;
    readonly #middleware: Middleware[] = [];
    readonly #completers = new Completers();
    /** Entries by the number of the engine's operation; numbers are not reused. */
    readonly #offered = new Map<number, Offered>();
    /** The same entries, with the layers of this server around them. */
    readonly #served = new Map<number, Entry>();
    readonly #skills: ReturnType<typeof skillFolders> = [];
    readonly #mounts: Mount[] = [];
    readonly #mountedIn: Mount[] = [];
    readonly #verifying: Verifying | undefined;

    /** @internal */
    protected constructor(name: string, version: string, options: ServerOptions<State>) {
        this.#name = name;
        this.#hooks = options;
        this.#options = options;
        this.failures = new Failures(options.onError, options.logger);
        const { policy = {} } = options;
        const { lifespan, approval, sanitise, integers, delegate, stateKey, logger, telemetry: isObserved, ...rest } = options;
        const settings = settingsJson({ name, version, ...rest, stateKey: stateKey && [...stateKey] });
        const hooked = [approval, sanitise].flatMap(hooks => Object.keys(hooks ?? {}));
        this.#verifying = Verifying.of(policy, this.failures);
        const observer = isObserved ? telemetry().native : undefined;
        const verify = this.#verifying && weakly(this.#verifying.ask);
        this.entries = guarded(() => new native.Entries(settings, hooked, delegate && JSON.stringify(delegate), auditing(policy, this.failures), verify, observer));
        if (this.#verifying) this.#verifying.native = this.entries;
        const common = { key: '', isTool: false, failures: this.failures };
        this.#put(Kind.Completion, {
            entry: {
                ...common,
                kind: Kind.Completion,
                what: 'completion',
                call: (params, context) => this.#complete(params, context),
                answer: value => completionAnswer(value as readonly string[]),
                reply: value => completionReply(value as readonly string[]),
                ownerOf: params => this.#completer(params)
            }
        });
        this.#put(Kind.Lists, { entry: { ...common, ...LISTED } });
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
        return this.#served.get(target);
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
        const register = (entries: NativeEntries, name: string) => entries.tool(settingsJson({ name, ...rest, ...schemas }));
        let number = -1;
        const misfit = (json: string) => this.entries.misfit(number, json);
        const what = `tool ${name}`;
        const answer = outputSchema ? structuredAnswer : toolAnswer;
        const isGood = (made: NativeEncoded) => this.entries.isGood(number, made);
        const failed = (error: unknown) => this.failures.report(error, what);
        const care = { atomic: rest.atomic, kept, answer, isGood, failed };
        const hasOutput = outputSchema !== undefined;
        const entry: Entry = {
            kind: Kind.Tool,
            key: name,
            what,
            isTool: true,
            call: attempted(name, check ? checked(handler, check) : handler, care),
            answer: kept || rest.atomic ? answered(answer) : answer,
            reply: (value, _, context) => toolReply(value, hasOutput, context),
            misfit,
            failures: this.failures
        };
        number = this.#offer({ entry, register, remove: (entries, name) => entries.removeTool(name), hasOutput });
        return this;
    }

    /** Adds a resource. */
    resource(
        uri: string,
        definition: ResourceDefinition,
        handler: (uri: string, context: Context<State>) => Awaitable<ResourceOutput>
    ): this {
        this.#offer({
            entry: {
                kind: Kind.Resource,
                key: uri,
                what: `resource ${uri}`,
                isTool: false,
                call: handler,
                answer: (value, at) => resourceAnswer(value, at, definition.mimeType),
                reply: (value, at) => resourceReply(value, at, definition.mimeType),
                failures: this.failures
            },
            register: (entries, uri) => entries.resource(settingsJson({ uri, ...definition })),
            remove: (entries, uri) => entries.removeResource(uri)
        });
        return this;
    }

    /** Adds resources by URI template; the handler gets the URI and the values of the template's variables. */
    resourceTemplate(
        template: string,
        definition: ResourceTemplateDefinition<State>,
        handler: (uri: string, variables: Record<string, string>, context: Context<State>) => Awaitable<ResourceOutput>
    ): this {
        const { complete = {}, ...rest } = definition;
        const completers = Object.entries(complete);
        this.#offer({
            entry: {
                kind: Kind.Template,
                key: template,
                what: `resource template ${template}`,
                isTool: false,
                call: ([uri, variables]: [string, Record<string, string>], context) => handler(uri, variables, context),
                answer: (value, [uri]) => resourceAnswer(value, uri, definition.mimeType),
                reply: (value, [uri]) => resourceReply(value, uri, definition.mimeType),
                failures: this.failures
            },
            register: (entries, uri) => entries.template(JSON.stringify({ uri, ...rest }), completers.length > 0),
            remove: (entries, uri) => entries.removeTemplate(uri),
            completers
        });
        return this;
    }

    /** Adds a prompt. */
    prompt(
        name: string,
        definition: PromptDefinition<State>,
        handler: (args: Record<string, string>, context: Context<State>) => Awaitable<PromptOutput>
    ): this {
        const completers = (definition.arguments ?? []).map(({ name, complete }) => [name, complete] as const);
        const completes = completers.some(([, complete]) => complete !== undefined);
        this.#offer({
            entry: {
                kind: Kind.Prompt,
                key: name,
                what: `prompt ${name}`,
                isTool: false,
                call: handler,
                answer: promptAnswer,
                reply: promptReply,
                parameters: completers.map(([name]) => name),
                failures: this.failures
            },
            register: (entries, name) => entries.prompt(JSON.stringify({ name, ...definition }), completes),
            remove: (entries, name) => entries.removePrompt(name),
            completers
        });
        return this;
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
        const entry = { kind: Kind.Method, key: method, what: `method ${method}`, isTool: false, call: handler, answer: objectAnswer };
        this.#put(number * KINDS + Kind.Method, { entry: { ...entry, failures: this.failures } });
        return this;
    }

    /**
     * Adds the skill in a folder, or every skill below it: folders with a `SKILL.md`. Their files are read now; files
     * that begin with a dot are skipped. The path between `folder` and a skill becomes part of the skill's URI.
     */
    skills(folder: string | URL): this {
        const path = folder instanceof URL ? fileURLToPath(folder) : folder;
        for (const skill of skillFolders(path)) this.#addSkill(skill);
        return this;
    }

    /**
     * Removes a tool and returns whether it existed. Calls in progress finish. Needs `listChanges` once the server
     * runs.
     */
    removeTool(name: string): boolean {
        return this.#remove(Kind.Tool, name);
    }

    /** Removes a resource and returns whether it existed. */
    removeResource(uri: string): boolean {
        return this.#remove(Kind.Resource, uri);
    }

    /** Removes a resource template and returns whether it existed. */
    removeResourceTemplate(template: string): boolean {
        return this.#remove(Kind.Template, template);
    }

    /** Removes a prompt and returns whether it existed. */
    removePrompt(name: string): boolean {
        return this.#remove(Kind.Prompt, name);
    }

    /** Notifies the clients that subscribed to a resource that it changed. Needs `subscriptions`, of the server that mounts this one if one does. */
    resourceUpdated(uri: string | URL): void {
        if (this.#options.subscriptions || this.#mountedIn.length === 0) guarded(() => this.entries.resourceUpdated(String(uri)));
        for (const { outer, prefix } of this.#mountedIn)
            if (outer.#options.subscriptions || outer.#mountedIn.length > 0) outer.resourceUpdated(prefix.key(Kind.Resource, String(uri)));
    }

    /**
     * Adds a middleware: a function around each call, read, prompt, completion and list of this server, and of the
     * servers that it mounts, whether they are added before or after it. It gets the `Call` and `next`, which carries on
     * and resolves to the reply: what the method of `Client` returns. It returns that, changed or not, or what a handler
     * may return, or answers without `next`, or throws as a handler may. It may be a plain function, too.
     *
     * The middleware added first is the outermost. Arguments are checked before it, and cleaned by `sanitise`; `approval`
     * follows it, then the cache and the steps of the tool. Methods of extensions pass no middleware. The engine answers the
     * handshake, pings, subscriptions, skills, tasks and requests that it refuses by itself. In a mounted server middleware
     * sees no lists.
     */
    use(...middleware: Middleware<State>[]): this {
        for (const one of middleware)
            if (typeof one !== 'function') throw new McpError('ERR_MCP_MISUSE', 'use: a middleware is a function: async (call, next) => next()');
        this.#middleware.push(...middleware);
        for (const target of this.#offered.keys()) this.#layer(target);
        this.entries.passLists();
        return this;
    }

    /**
     * Offers all that another server offers, now and later. Tools and prompts get names with the prefix, `PREFIX_NAME`;
     * resources and templates get the prefix as the first segment of their URI, `memo://PREFIX/path`; a URI without
     * `://` stays as it is. An empty prefix changes nothing. Skills are within a folder of that name.
     *
     * The other server's middleware, hooks, completers, lifespan and `onError` count for what it offers; its settings do
     * not, such as its instructions and its limits, and neither do its methods of extensions. Throws `ERR_MCP_MISUSE` if
     * the prefix is not a name, one server is within the other, the other one has a policy, which would not count, or it
     * has a lifespan and this server runs already; `ERR_MCP_DUPLICATE` if a name or URI is taken.
     */
    mount(prefix: string, server: Entries<any>): this {
        const mount = { outer: this, prefix: new Prefix(prefix), server };
        const misuse = (why: string) => new McpError('ERR_MCP_MISUSE', `mount: ${why}`);
        if (server === this || server.inner().includes(this)) throw misuse('one server is within the other already');
        if (server.#options.policy)
            throw misuse(`server ${server.#name} has a policy, which would not count here; give it to ${this.#name}, whose clients call the tools`);
        if (this.#isRunning() && [server, ...server.inner()].some(one => one.#options.lifespan))
            throw misuse(`server ${server.#name} has a lifespan, and ${this.#name} runs already: mount it before`);
        for (const { entry } of server.#offered.values()) this.#checkFree(mount, entry);
        this.#checkSkills(mount, server.#skills);
        try {
            for (const [target, offered] of server.#offered) this.#adopt(mount, target, offered);
            for (const skill of server.#skills) this.#adoptSkill(mount, skill);
        } catch (error) {
            for (const { entry } of server.#offered.values()) this.#remove(entry.kind, mount.prefix.key(entry.kind, entry.key), entry.owner ?? server);
            throw error;
        }
        this.#mounts.push(mount);
        server.#mountedIn.push(mount);
        return this;
    }

    /** @internal */
    get title(): string {
        return this.#name;
    }

    /** @internal */
    get lifespan(): ServerOptions<State>['lifespan'] {
        return this.#options.lifespan;
    }

    /** @internal The servers within this one, and those within them, each once. */
    inner(): Entries<any>[] {
        return [...new Set(this.#mounts.flatMap(({ server }) => [server, ...server.inner()]))];
    }

    /** @internal Checks that each tool that has a hook exists, unless tools may be added later; the engine does so for the server that serves. */
    checkHooks(): void {
        const { approval, sanitise, listChanges } = this.#options;
        if (listChanges) return;
        const tools = new Set([...this.#offered.values()].filter(({ entry }) => entry.kind === Kind.Tool).map(({ entry }) => entry.key));
        const unknown = [approval, sanitise].flatMap(hooks => Object.keys(hooks ?? {})).find(name => name !== '*' && !tools.has(name));
        if (unknown !== undefined) throw new McpError('ERR_MCP_MISUSE', `server ${this.#name} has a hook for a tool, but no tool is called ${JSON.stringify(unknown)}`);
    }

    /** @internal Whether clients are served now. */
    protected get isServing(): boolean {
        return false;
    }

    #isRunning(): boolean {
        return this.isServing || this.#mountedIn.some(({ outer }) => outer.#isRunning());
    }

    #put(target: number, offered: Offered): void {
        this.#offered.set(target, offered);
        this.#layer(target);
    }

    #layer(target: number): void {
        this.#served.set(target, layered(this.#offered.get(target)!.entry, this.#hooks, this.#middleware));
    }

    /** @internal Checks that a name may be given to an entry, besides that it is free. */
    protected checkName(_: Pick<Entry, 'kind' | 'key'>): void {}

    /** @internal The entries, those of mounted servers included. */
    protected offered(): Entry[] {
        return [...this.#offered.values()].map(({ entry }) => entry);
    }

    /** @internal Whether another server offers what this one does. */
    protected get isMounted(): boolean {
        return this.#mountedIn.length > 0;
    }

    /** Adds an entry here, and wherever this server is mounted; returns its number. */
    #offer(offered: Offered): number {
        const { entry, register, hasOutput, completers } = offered;
        this.checkName(entry);
        for (const mount of this.#mountedIn) mount.outer.#checkFree(mount, entry);
        const number = guarded(() => register!(this.entries, entry.key));
        const target = number * KINDS + entry.kind;
        this.#put(target, hasOutput ? { ...offered, entry: { ...entry, checked: number + 1 } } : offered);
        if (completers && !entry.owner) this.#completers.add(entry.kind === Kind.Prompt ? 'prompt' : 'resource', entry.key, completers);
        try {
            for (const mount of this.#mountedIn) mount.outer.#adopt(mount, target, offered);
        } catch (error) {
            this.#remove(entry.kind, entry.key);
            throw error;
        }
        return number;
    }

    /** Adds an entry of a mounted server. */
    #adopt({ prefix, server }: Mount, target: number, offered: Offered): void {
        const { entry, register } = offered;
        if (register === undefined) return;
        const key = prefix.key(entry.kind, entry.key);
        const current = server.#served.get(target)!;
        // A call that begins while the entry is removed is carried out.
        const call = prefix.enter(entry, () => server.#served.get(target) ?? current);
        const failures = within(entry.failures, this.failures);
        this.#offer({ ...offered, entry: { ...entry, key, what: `${WORDS[entry.kind]} ${key}`, call, failures, owner: entry.owner ?? server } });
    }

    /** Checks that the name of an entry of a mounted server is free here, and wherever this server is mounted. */
    #checkFree({ prefix, server }: Mount, { kind, key }: Entry): void {
        const own = prefix.key(kind, key);
        if (kind > Kind.Prompt) return;
        this.checkName({ kind, key: own });
        for (const { entry } of this.#offered.values())
            if (entry.kind === kind && entry.key === own)
                throw new McpError(
                    'ERR_MCP_DUPLICATE',
                    `server ${this.#name} would offer the ${WORDS[kind]} ${own} twice: ${entry.owner ? `that of server ${(entry.owner as Entries<any>).#name}` : 'its own'} and ${key} of server ${server.#name}; rename one, or mount under another prefix`
                );
        for (const mount of this.#mountedIn) mount.outer.#checkFree(mount, { kind, key: own } as Entry);
    }

    #addSkill(skill: ReturnType<typeof skillFolders>[number]): void {
        guarded(() => this.entries.skill(skill.manifest, skill.within, skill.files));
        this.#skills.push(skill);
        for (const mount of this.#mountedIn) mount.outer.#adoptSkill(mount, skill);
    }

    #adoptSkill(mount: Mount, skill: ReturnType<typeof skillFolders>[number]): void {
        this.#addSkill(adopted(mount, skill));
    }

    /** Checks that skills of a mounted server can be added here, and wherever this server is mounted. */
    #checkSkills(mount: Mount, skills: ReturnType<typeof skillFolders>): void {
        if (skills.length === 0) return;
        const own = skills.map(skill => adopted(mount, skill));
        const trial = new native.Entries(settingsJson({ name: this.#name, version: '' }), []);
        for (const { manifest, within } of [...this.#skills, ...own]) guarded(() => trial.skill(manifest, within, []));
        for (const outer of this.#mountedIn) outer.outer.#checkSkills(outer, own);
    }

    /** The mounted server that completes, and the params as that server has them. */
    #completing(params: CompletionParams): { server: Entries<any>; params: CompletionParams } | undefined {
        const { ref } = params;
        const [kind, member] = ref.type === 'ref/prompt' ? [Kind.Prompt, 'name' as const] : [Kind.Template, 'uri' as const];
        for (const { prefix, server } of this.#mounts) {
            const key = prefix.local(kind, ref[member] ?? '');
            for (const { entry } of server.#offered.values())
                if (entry.kind === kind && entry.key === key) return { server, params: { ...params, ref: { ...ref, [member]: key } } };
        }
        return undefined;
    }

    #completer(params: CompletionParams): Entries<any> | undefined {
        const found = this.#completing(params);
        return found && (found.server.#completer(found.params) ?? found.server);
    }

    #complete(params: CompletionParams, context: Context<any>): unknown {
        const found = this.#completing(params);
        if (found === undefined) return this.#completers.call(params, context);
        return found.server.#served.get(Kind.Completion)!.call(found.params, context);
    }

    /** Removes an entry here, and wherever this server is mounted; calls in progress already hold theirs. */
    #remove(kind: Kind, key: string, owner?: object): boolean {
        const isIt = ({ entry }: Offered) => entry.kind === kind && entry.key === key && (owner === undefined || entry.owner === owner);
        const found = [...this.#offered].find(([, offered]) => isIt(offered));
        if (!found) return false;
        const [target, offered] = found;
        const { remove, entry } = offered;
        const without: Mount[] = [];
        let removed: boolean;
        try {
            for (const mount of this.#mountedIn) if (mount.outer.#remove(kind, mount.prefix.key(kind, key), entry.owner ?? this)) without.push(mount);
            removed = guarded(() => remove!(this.entries, key));
        } catch (error) {
            // If one refuses, all keep it.
            for (const mount of without) mount.outer.#adopt(mount, target, offered);
            throw error;
        }
        this.#offered.delete(target);
        this.#served.delete(target);
        if (kind === Kind.Prompt || kind === Kind.Template) this.#completers.remove(kind === Kind.Prompt ? 'prompt' : 'resource', entry.key);
        return removed;
    }
}

/** Runs the schema library's own validation before the handler. */
function checked(handler: Handler, check: Check): Handler {
    return (args, context, steps) => {
        return after(check(args), (result: Awaited<ReturnType<Check>>) => {
            if (result.issues) throw new ToolError(`invalid arguments: ${describe(result.issues)}`);
            return handler(result.value, context, steps);
        });
    };
}

/** A skill of a mounted server, as the outer one has it. */
function adopted({ prefix: { prefix } }: Mount, skill: ReturnType<typeof skillFolders>[number]): typeof skill {
    return { ...skill, within: [prefix, skill.within].filter(Boolean).join('/') };
}
