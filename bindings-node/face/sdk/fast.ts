import { randomUUID } from 'node:crypto';
import { Outbound } from '../link';
import { contextOf, extraOf, type SdkCall } from './call';
import { isPlainResult, readerOf, textOf } from './plain';
import type { Proof } from './proof';
import { entryOf, isObject, type Id, type SdkMcpServer, type SdkTool } from './shapes';

/** A tool that nobody sees or knows: what it gives is what another one gave, for the SDK to look at and send. */
const COURIER = `mcpbolt courier ${randomUUID()}`;
/** Which the SDKs tell as errors of the protocol. */
const URL_ELICITATION_REQUIRED = -32042;

/** What the courier brings: first what was given, and then, where the SDK asks again, what the tool gives anew. */
interface Parcel {
    open?: (() => unknown) | undefined;
    again: (context: object) => unknown;
}

/**
 * @internal Serves what an `McpServer` has registered without the SDK's protocol: its schemas read the arguments, its
 * callbacks are called with what they expect. Whatever is out of the ordinary is left to the SDK, before anything of the
 * user's was called; results that are not plain text or data are checked and sent by the SDK.
 */
export class Fast {
    readonly #server: SdkMcpServer;
    readonly #generation: 1 | 2;
    readonly #proof: Proof;
    readonly #parcels = new Map<Id, Parcel>();
    #hasCourier = false;

    constructor(server: SdkMcpServer, generation: 1 | 2, proof: Proof) {
        this.#server = server;
        this.#generation = generation;
        this.#proof = proof;
    }

    /** Whether it is served here. */
    serve(call: SdkCall): boolean {
        const { method, params } = call.message;
        if (!isObject(params) || !this.#proof.holds(method) || isOutOfTheOrdinary(params)) return false;
        switch (method) {
            case 'tools/call':
                return this.#callTool(call, params);
            case 'resources/read':
                return this.#generation === 1 && this.#read(call, params);
            case 'prompts/get':
                return this.#generation === 1 && this.#getPrompt(call, params);
            default:
                return false;
        }
    }

    #callTool(call: SdkCall, { name, arguments: args, task }: Record<string, any>): boolean {
        const tool = entryOf(this.#server._registeredTools, name);
        if (tool === undefined || task !== undefined || whyNot(tool) !== undefined) return false;
        if (args !== undefined && !isObject(args)) return false;
        if (tool.inputSchema === undefined || tool.inputSchema === null) {
            if (this.#server._maxToolInputElements !== undefined) return false;
            this.#run(call, tool, undefined);
            return true;
        }
        const reader = this.#server._maxToolInputElements === undefined ? readerOf(tool.inputSchema) : null;
        if (reader === null) {
            const read = this.#server.validateToolInput(tool, args, name);
            read.then(
                value => this.#run(call, tool, value),
                error => this.#threw(call, error)
            );
            return true;
        }
        const read = reader(args ?? {});
        if (read === undefined) return false;
        this.#run(call, tool, read.value);
        return true;
    }

    /** Arguments are only given to tools that take some. */
    #invoke(tool: SdkTool, args: unknown, context: object): unknown {
        const { handler, executor } = tool;
        if (this.#generation === 2) return executor!(args, context);
        return tool.inputSchema ? handler(args, context) : handler(context);
    }

    #run(call: SdkCall, tool: SdkTool, args: unknown): void {
        if (call.isOver) return;
        try {
            const given = this.#invoke(tool, args, this.#contextOf(call));
            if (!isThenable(given)) return this.#gave(call, tool, args, given);
            given.then(
                result => this.#gave(call, tool, args, result),
                error => this.#threw(call, error)
            );
        } catch (error) {
            this.#threw(call, error);
        }
    }

    #contextOf(call: SdkCall): object {
        return this.#generation === 1 ? extraOf(call) : contextOf(call);
    }

    #gave(call: SdkCall, tool: SdkTool, args: unknown, result: any): void {
        if (call.isOver) return;
        if (tool.outputSchema && !result?.isError && (this.#generation === 1 || result?.resultType !== 'input_required')) {
            const checked = this.#server.validateToolOutput(tool, result, call.message.params.name);
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
        // What v2 makes of structured content depends on the revision.
        if (isPlainResult(result) && (this.#generation === 1 || result.structuredContent === undefined))
            return bridge.answer(call, Outbound.Object, JSON.stringify(result));
        this.#bring(call, { open: () => result, again: context => this.#invoke(tool, args, context) });
    }

    #threw(call: SdkCall, error: any): void {
        if (call.isOver) return;
        const text = error instanceof Error ? error.message : String(error);
        if (error?.code === URL_ELICITATION_REQUIRED || !text.isWellFormed()) {
            const open = () => {
                throw error;
            };
            return this.#bring(call, { open, again: open });
        }
        call.bridge.answer(call, Outbound.ToolError, text);
    }

    /** Has the SDK answer with what is in the parcel. */
    #bring(call: SdkCall, parcel: Parcel): void {
        if (!this.#hasCourier) {
            this.#hasCourier = true;
            const open = (id: Id, context: object) => {
                const parcel = this.#parcels.get(id)!;
                const { open } = parcel;
                parcel.open = undefined;
                return open ? open() : parcel.again(context);
            };
            const handler = (extra: any) => open(extra.requestId, extra);
            const executor = async (_: unknown, context: any) => open(context.mcpReq.id, context);
            const value = { enabled: true, handler, executor };
            Object.defineProperty(this.#server._registeredTools, COURIER, { value, enumerable: false });
        }
        const { id, params } = call.message;
        this.#parcels.set(id!, parcel);
        call.onEnd = () => this.#parcels.delete(id!);
        const { _meta } = params;
        call.bridge.fall(call, { ...call.message, params: { name: COURIER, ...(_meta && { _meta }) } });
    }

    #read(call: SdkCall, { uri }: Record<string, any>): boolean {
        if (typeof uri !== 'string' || !URL.canParse(uri)) return false;
        const url = new URL(uri);
        const resource = entryOf(this.#server._registeredResources, url.toString());
        if (resource) {
            if (!resource.enabled) return false;
            this.#give(call, () => resource.readCallback(url, extraOf(call)));
            return true;
        }
        for (const template of Object.values(this.#server._registeredResourceTemplates)) {
            const variables = template.resourceTemplate!.uriTemplate.match(url.toString());
            if (!variables) continue;
            this.#give(call, () => template.readCallback(url, variables, extraOf(call)));
            return true;
        }
        return false;
    }

    #getPrompt(call: SdkCall, { name, arguments: args }: Record<string, any>): boolean {
        const prompt = entryOf(this.#server._registeredPrompts, name);
        if (!prompt?.enabled || !prompt.callback) return false;
        if (!areStrings(args)) return false;
        const { argsSchema, callback } = prompt;
        if (!argsSchema) {
            this.#give(call, () => callback(extraOf(call)));
            return true;
        }
        const read = readerOf(argsSchema)?.(args ?? {});
        if (read === undefined) return false;
        this.#give(call, () => callback(read.value, extraOf(call)));
        return true;
    }

    /** Answers with what is given, which v1 does not look at. */
    #give(call: SdkCall, give: () => unknown): void {
        const { bridge } = call;
        const fail = (error: any) => {
            const code = Number.isSafeInteger(error.code) ? error.code : INTERNAL;
            const { message = 'Internal error', data } = error;
            bridge.answer(call, Outbound.Error, JSON.stringify({ message, data }), code);
        };
        const send = (result: unknown) => {
            if (isObject(result)) bridge.answer(call, Outbound.Object, JSON.stringify(result));
            else fail(new TypeError('the handler gave no result'));
        };
        try {
            const given = give();
            if (isThenable(given)) given.then(send, fail);
            else send(given);
        } catch (error) {
            fail(error);
        }
    }
}

const INTERNAL = -32603;

/** @internal Why a tool is left to the SDK. */
export function whyNot(tool: SdkTool): string | undefined {
    if (!tool.enabled) return 'it is disabled';
    const support = tool.execution?.taskSupport;
    if (support === 'required' || support === 'optional') return 'its calls may go on as tasks';
    if (tool.executor === undefined && typeof tool.handler !== 'function') return 'its calls may go on as tasks';
    return undefined;
}

/** What the SDK has rules for that are not followed here. */
function isOutOfTheOrdinary({ _meta, requestState, inputResponses }: Record<string, any>): boolean {
    if (requestState !== undefined || inputResponses !== undefined) return true;
    if (_meta === undefined) return false;
    return !isObject(_meta) || _meta['io.modelcontextprotocol/related-task'] !== undefined;
}

function areStrings(args: unknown): boolean {
    return args === undefined || (isObject(args) && Object.values(args).every(value => typeof value === 'string'));
}

function isThenable(value: any): value is PromiseLike<any> {
    return typeof value?.then === 'function';
}
