import { Outbound } from '../link';
import { isThenable } from '../thenable';
import type { SdkCall } from './call';
import { Couriers, type Kind } from './courier';
import { isPlainResult, readerOf, textOf, type Reader } from './plain';
import { boundsArguments, promptsOf, resourcesOf, templatesOf, toolsOf, validateInput, validateOutput } from './private';
import type { Proof } from './proof';
import { entryOf, isObject, isOutOfTheOrdinary, type SdkMcpServer, type SdkTool } from './shapes';

/** The SDKs send this one as a protocol error. */
const URL_ELICITATION_REQUIRED = -32042;
const INTERNAL = -32603;

/** Maximum number of tools with a number; `src/delegate.rs` has the same limit. */
const MAX_TOOLS = 10_000;

/** A tool that is called by number, and the reader of its arguments. */
interface Numbered {
    name: string;
    schema: unknown;
    reader: Reader | null;
}

/**
 * @internal Serves the registrations of an `McpServer` without the SDK's protocol: validates arguments with its
 * schemas, and calls its callbacks with what they expect. Unusual requests are left to the SDK before any user code
 * runs; results other than plain text or data are checked and sent by the SDK.
 */
export class Fast {
    readonly #couriers: Couriers;
    readonly #numbered: Numbered[] = [];
    readonly #numbers = new Map<string, number>();

    constructor(private readonly server: SdkMcpServer, private readonly generation: 1 | 2, private readonly proof: Proof) {
        this.#couriers = new Couriers(server);
    }

    /** The names and numbers of the current tools. A name keeps its number. */
    number(): [string[], number[]] {
        const names = Object.keys(toolsOf(this.server));
        const all = names.map(name => [name, this.#numberOf(name)] as const).filter(([, number]) => number < MAX_TOOLS);
        return [all.map(([name]) => name), all.map(([, number]) => number)];
    }

    #numberOf(name: string): number {
        const known = this.#numbers.get(name) ?? this.#numbered.length;
        if (known === this.#numbered.length && known < MAX_TOOLS) {
            this.#numbered.push({ name, schema: undefined, reader: null });
            this.#numbers.set(name, known);
        }
        return known;
    }

    nameOf(tool: number): string {
        return this.#numbered[tool]!.name;
    }

    /** Serves a call of the tool with that number; returns whether it is served here. */
    invoke(call: SdkCall, number: number): boolean {
        if (!this.proof.holds('tools/call')) return false;
        const numbered = this.#numbered[number]!;
        const tool = entryOf(toolsOf(this.server), numbered.name);
        if (tool === undefined || whyNot(tool) !== undefined) return false;
        const { inputSchema } = tool;
        if (numbered.schema !== inputSchema) {
            numbered.schema = inputSchema;
            numbered.reader = inputSchema ? readerOf(inputSchema) : null;
        }
        return this.#callTool(call, numbered.name, tool, call.args, numbered.reader);
    }

    /** Serves a call; returns whether it is served here. */
    serve(call: SdkCall): boolean {
        const { method } = call;
        const { params } = call.message;
        if (!isObject(params) || !this.proof.holds(method) || isOutOfTheOrdinary(params)) return false;
        switch (method) {
            case 'tools/call': {
                const { name, arguments: args, task } = params;
                const tool = entryOf(toolsOf(this.server), name);
                if (tool === undefined || task !== undefined || whyNot(tool) !== undefined) return false;
                if (args !== undefined && !isObject(args)) return false;
                return this.#callTool(call, name, tool, args, tool.inputSchema ? readerOf(tool.inputSchema) : null);
            }
            case 'resources/read':
                return this.#read(call, params);
            case 'prompts/get':
                return this.#getPrompt(call, params);
            default:
                return false;
        }
    }

    #callTool(call: SdkCall, name: string, tool: SdkTool, args: object | undefined, reader: Reader | null): boolean {
        const isBounded = boundsArguments(this.server);
        if (tool.inputSchema === undefined || tool.inputSchema === null) {
            if (isBounded) return false;
            this.#run(call, name, tool, undefined);
            return true;
        }
        // Without arguments, releases of the SDK differ in what they validate.
        if (reader === null || isBounded || args === undefined) {
            const read = validateInput(this.server, tool, args, name);
            read.then(
                value => this.#run(call, name, tool, value),
                error => this.#threw(call, error)
            );
            return true;
        }
        const read = reader(args);
        if (read === undefined) return false;
        this.#run(call, name, tool, read.value);
        return true;
    }

    /** Tools without an input schema get no arguments. */
    #invoke(tool: SdkTool, args: unknown, context: object): unknown {
        const { handler, executor } = tool;
        if (this.generation === 2) return executor!(args, context);
        return tool.inputSchema ? handler(args, context) : handler(context);
    }

    #run(call: SdkCall, name: string, tool: SdkTool, args: unknown): void {
        if (call.isOver) return;
        try {
            const given = this.#invoke(tool, args, call.context);
            if (!isThenable(given)) return this.#gave(call, name, tool, args, given);
            given.then(
                result => this.#gave(call, name, tool, args, result),
                error => this.#threw(call, error)
            );
        } catch (error) {
            this.#threw(call, error);
        }
    }

    #gave(call: SdkCall, name: string, tool: SdkTool, args: unknown, result: any): void {
        if (call.isOver) return;
        if (tool.outputSchema && !result?.isError && (this.generation === 1 || result?.resultType !== 'input_required')) {
            const checked = validateOutput(this.server, tool, result, name);
            checked.then(
                () => this.#send(call, tool, args, result),
                error => this.#threw(call, error)
            );
        } else this.#send(call, tool, args, result);
    }

    #send(call: SdkCall, tool: SdkTool, args: unknown, result: any): void {
        if (call.isOver) return;
        const text = textOf(result);
        const { bridge } = call;
        if (text !== undefined) return bridge.answer(call, Outbound.Text, text);
        // How v2 sends structured content depends on the revision.
        if (isPlainResult(result) && (this.generation === 1 || result.structuredContent === undefined)) {
            let written: string;
            try {
                written = JSON.stringify(result);
            } catch (error) {
                return this.#threw(call, error);
            }
            return bridge.answer(call, Outbound.Object, written);
        }
        this.#couriers.bring('tools/call', call, () => result, context => this.#invoke(tool, args, context));
    }

    #threw(call: SdkCall, error: any): void {
        if (call.isOver) return;
        const text = error instanceof Error ? error.message : String(error);
        if (error?.code === URL_ELICITATION_REQUIRED || !text.isWellFormed()) return this.#bringError('tools/call', call, error);
        call.bridge.answer(call, Outbound.ToolError, text);
    }

    #bringError(kind: Kind, call: SdkCall, error: unknown): void {
        const open = () => {
            throw error;
        };
        this.#couriers.bring(kind, call, open, open);
    }

    #read(call: SdkCall, { uri }: Record<string, any>): boolean {
        if (typeof uri !== 'string' || !URL.canParse(uri)) return false;
        const url = new URL(uri);
        const resource = entryOf(resourcesOf(this.server), url.toString());
        if (resource) {
            if (!resource.enabled) return false;
            return this.#give('resources/read', call, resource, context => resource.readCallback(url, context));
        }
        for (const template of Object.values(templatesOf(this.server))) {
            const variables = template.resourceTemplate!.uriTemplate.match(url.toString());
            if (!variables) continue;
            // v1 reads disabled templates, too.
            if (this.generation === 2 && !template.enabled) return false;
            return this.#give('resources/read', call, template, context => template.readCallback(url, variables, context));
        }
        return false;
    }

    #getPrompt(call: SdkCall, { name, arguments: args }: Record<string, any>): boolean {
        const prompt = entryOf(promptsOf(this.server), name);
        if (!prompt?.enabled || !areStrings(args)) return false;
        const { argsSchema, callback, handler } = prompt;
        // In v2 the handler validates its arguments itself.
        if (this.generation === 2) return handler !== undefined && this.#give('prompts/get', call, prompt, context => handler(args, context));
        if (!callback) return false;
        if (!argsSchema) return this.#give('prompts/get', call, prompt, context => callback(context));
        const read = args === undefined ? undefined : readerOf(argsSchema)?.(args);
        return read !== undefined && this.#give('prompts/get', call, prompt, context => callback(read.value, context));
    }

    /** Answers with a result that the SDKs do not check, except that in v2 it may be a question. */
    #give(kind: Kind, call: SdkCall, { cacheHint }: { cacheHint?: any }, give: (context: object) => unknown): true {
        const { bridge } = call;
        const fail = (error: any) => {
            if (call.isOver) return;
            // v2 reports some errors differently.
            if (this.generation === 2) return this.#bringError(kind, call, error);
            const code = Number.isSafeInteger(error?.code) ? error.code : INTERNAL;
            const { message = 'Internal error', data } = error ?? {};
            bridge.answer(call, Outbound.Error, JSON.stringify({ message, data }), code);
        };
        const send = (result: any) => {
            if (call.isOver) return;
            // From 2026-07-28 on, a read resource says how long it may be cached, by rules of v2.
            const isCached = call.isAlone && kind === 'resources/read';
            const isPlain = isObject(result) && (this.generation === 1 || isSettled(result));
            if (isPlain && !isCached) return bridge.answer(call, Outbound.Object, JSON.stringify(result));
            if (this.generation === 1) return fail(new TypeError('the handler returned no result object'));
            const kept = isCached && isObject(result) ? { ...cacheHint, ...result } : result;
            this.#couriers.bring(kind, call, () => kept, give);
        };
        // A result that JSON cannot hold fails its call; otherwise the rejection would end the program.
        const settle = (result: any) => {
            try {
                send(result);
            } catch (error) {
                fail(error);
            }
        };
        try {
            const given = give(call.context);
            if (isThenable(given)) given.then(settle, fail);
            else send(given);
        } catch (error) {
            fail(error);
        }
        return true;
    }
}

/** @internal Why a tool is left to the SDK, if it is. */
export function whyNot(tool: SdkTool): string | undefined {
    if (!tool.enabled) return 'it is disabled';
    const support = tool.execution?.taskSupport;
    if (support === 'required' || support === 'optional') return 'its calls may go on as tasks';
    if (tool.executor === undefined && typeof tool.handler !== 'function') return 'its calls may go on as tasks';
    return undefined;
}

/** Whether a result is final: it requests no input, and has no property that v2 handles specially. */
function isSettled(result: Record<string, any>): boolean {
    return result.resultType === undefined && Object.getOwnPropertySymbols(result).length === 0;
}

function areStrings(args: unknown): boolean {
    return args === undefined || (isObject(args) && Object.values(args).every(value => typeof value === 'string'));
}
