import type { Connection } from './connection';
import { Json } from './content';
import { McpError } from './errors';
import { readJson, writeJson } from './numbers';
import type { CallToolResult, Tool } from './protocol';
import { arrayOf, type RequestOptions } from './requests';
import { createdTask, readTask, ToolTask, type TaskInfo } from './task';

export interface StartOptions extends RequestOptions {
    /** How long the server should keep the task, in ms; only where the client asks for tasks (2025-11-25). */
    ttl?: number;
}

/** @internal Tool calls of a client, and the tools that it has listed. */
export class Calls {
    #tools = new Map<string, Tool>();

    constructor(private readonly connection: Connection) {}

    /** Replaces the known tools with a complete list. */
    learn(tools: readonly Tool[]): void {
        this.#tools = new Map(tools.map(tool => [tool.name, tool]));
        const described = tools.filter(({ outputSchema }) => outputSchema !== undefined);
        const schemas = described.map(({ name, outputSchema }) => [name, outputSchema]);
        this.connection.link.native.learnOutputs(JSON.stringify(schemas));
    }

    /** Calls a tool; as a task if the tool cannot be called otherwise (R-TSK-03). */
    call(name: string, args: object | Json, options?: RequestOptions): Promise<CallToolResult> {
        if (this.#asks && this.#supportOf(name) === 'required')
            return this.start(name, args, options).then(task => task.result());
        const connection = this.connection;
        const params = paramsOf(name, args);
        if (!this.#hasOutput(name)) return connection.ask<CallToolResult>('tools', 'tools/call', params, options);
        const missing = connection.lacks('tools');
        if (missing) return Promise.reject(missing);
        return connection.requestJson('tools/call', params, options).then(json => this.#checked(name, json));
    }

    async start(name: string, args: object | Json, options: StartOptions = {}): Promise<ToolTask> {
        const connection = this.connection;
        const missing = connection.lacks('tools') ?? (this.#asks ? this.#refusal(name) : undefined);
        if (missing) throw missing;
        const { ttl } = options;
        const more = this.#asks ? { task: ttl === undefined ? {} : { ttl } } : {};
        const answer = await connection.requests.startTool(paramsOf(name, args, more), options);
        const id = createdTask(JSON.parse(answer), this.#asks);
        if (id !== undefined) return this.task(id, options, name);
        return new ToolTask(connection, undefined, async () => this.#checked(name, answer));
    }

    /** The task with that id; `tool` is the tool that it calls, if known. */
    task(id: string, { signal }: Pick<RequestOptions, 'signal'> = {}, tool?: string): ToolTask {
        const connection = this.connection;
        return new ToolTask(connection, id, async seen => {
            const result = await connection.requests.followTask(id, { ...(signal && { signal }), onProgress: seen });
            return this.#checked(tool, result);
        });
    }

    async tasks(options?: RequestOptions): Promise<TaskInfo[]> {
        const connection = this.connection;
        const unknown = new McpError('ERR_MCP_UNSUPPORTED', 'listTasks needs revision 2025-11-25');
        const missing = this.#asks ? connection.lacks('tasks', 'list') : unknown;
        if (missing) throw missing;
        const tasks = await connection.lists.all<Record<string, unknown>>('tasks', options);
        return tasks.map(readTask);
    }

    /** Whether the client has to ask for tasks (2025-11-25). */
    get #asks(): boolean {
        return this.connection.opened.tasks === 'core';
    }

    /** Why the call of a tool cannot become a task. */
    #refusal(name: string): McpError | undefined {
        if (this.#supportOf(name) === 'forbidden') return new McpError('ERR_MCP_UNSUPPORTED', `the tool ${name} does not support tasks`);
        return this.connection.lacks('tasks', 'requests', 'tools', 'call');
    }

    /** The tool's `taskSupport`, if the tool was listed. */
    #supportOf(name: string): string | undefined {
        const tool = this.#tools.get(name);
        return tool && (tool.execution?.taskSupport ?? 'forbidden');
    }

    #hasOutput(tool: string): boolean {
        return this.#tools.get(tool)?.outputSchema !== undefined;
    }

    /** Validates the result against the tool's output schema, if the tool was listed with one (R-STR-02, R-STR-07). */
    #checked(tool: string | undefined, json: string): CallToolResult {
        const { native, integers } = this.connection.link;
        const result = readJson(json, integers) as CallToolResult;
        if (tool === undefined || !this.#hasOutput(tool) || result.isError) return result;
        // As strings of digits, integers would not fit the schema.
        const { structuredContent: content } = integers === 'text' ? readJson(json, 'bigint') : result;
        const wrong = content === undefined ? 'there is none' : native.misfit(tool, writeJson(content)!);
        if (wrong === null) return result;
        throw new McpError('ERR_MCP_BAD_ANSWER', `the structured content does not fit the output schema of ${tool}: ${wrong}`);
    }
}

function paramsOf(name: string, args: object | Json, more = {}): object {
    if (!(args instanceof Json)) return { name, arguments: args, ...more };
    const head = JSON.stringify({ name, ...more });
    return new Json(`${head.slice(0, -1)},"arguments":${args.text}}`);
}
