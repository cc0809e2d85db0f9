import type { Connection } from './connection';
import { McpError } from './errors';
import type { CallToolResult } from './protocol';
import type { RequestOptions } from './requests';

const ENDED = ['completed', 'failed', 'cancelled'] as const;
const STATUSES = ['working', 'input_required', ...ENDED] as const;

/** How far a task is. */
export type TaskStatus = (typeof STATUSES)[number];

/** What a server says of a task. */
export interface TaskInfo {
    taskId: string;
    status: TaskStatus;
    /** A sentence on how far it is. */
    statusMessage?: string;
    /** When it began and when it last changed: ISO 8601. */
    createdAt: string;
    lastUpdatedAt: string;
    /** How long it is kept from its beginning, in ms; for ever when `null`. */
    ttl: number | null;
    /** How often to ask, in ms. */
    pollInterval?: number;
}

/** @internal In either form. */
export function readTask(json: Record<string, any>): TaskInfo {
    const { taskId, status, statusMessage, createdAt, lastUpdatedAt } = json;
    const pollInterval = json.pollIntervalMs ?? json.pollInterval;
    if (typeof taskId !== 'string' || !STATUSES.includes(status))
        throw new McpError('ERR_MCP_BAD_ANSWER', 'a task of another shape');
    return {
        taskId,
        status,
        ...(statusMessage !== undefined && { statusMessage }),
        createdAt,
        lastUpdatedAt,
        ttl: json.ttlMs ?? json.ttl ?? null,
        ...(pollInterval !== undefined && { pollInterval })
    };
}

/** @internal The id of the task that a call says to have become, in the form of 2025-11-25 or the later one. */
export function createdTask(answer: Record<string, any>, isCore: boolean): string | undefined {
    if (isCore) return answer.task && readTask(answer.task).taskId;
    return answer.resultType === 'task' ? readTask(answer).taskId : undefined;
}

/** Waits for what comes of a task; `seen` is told each state of it. */
type Follow = (seen: (state: any) => void) => Promise<CallToolResult>;

/**
 * The call of a tool that goes on as a task at the server. `result` and iterating over it ask as often as the server
 * says, and have the handlers of the client's options answer what the task asks meanwhile; both share what they learn.
 * The signal that was given with the call stops that, not the task.
 */
export class ToolTask implements AsyncIterable<TaskInfo> {
    /** Its id, to be kept: `client.task(id)` finds it again. `undefined` when the server answered the call at once. */
    readonly id: string | undefined;
    readonly #connection: Connection;
    readonly #follow: Follow;
    #result: Promise<CallToolResult> | undefined;
    #isOver = false;
    #latest: TaskInfo | undefined;
    #waiting: (() => void)[] = [];

    /** @internal */
    constructor(connection: Connection, id: string | undefined, follow: Follow) {
        this.#connection = connection;
        this.id = id;
        this.#follow = follow;
    }

    /** What the call comes to. Fails with `ERR_MCP_CANCELLED` when the task is given up, with its error if it fails. */
    result(): Promise<CallToolResult> {
        if (this.#result === undefined) {
            const note = (state: object) => {
                this.#latest = readTask(state);
                this.#wake();
            };
            this.#result = this.#follow(note).finally(() => {
                this.#isOver = true;
                this.#wake();
            });
            // Who only iterates does not ask for it.
            this.#result.catch(() => {});
        }
        return this.#result;
    }

    /** Asks how far it is. */
    async status(options?: RequestOptions): Promise<TaskInfo> {
        return readTask(await this.#ask('tasks/get', options));
    }

    /** Asks the server to give it up. It may be done before it does. */
    async cancel(options?: RequestOptions): Promise<void> {
        await this.#ask('tasks/cancel', options);
    }

    /** How far it is, whenever that changes, until it has ended. */
    async *[Symbol.asyncIterator](): AsyncGenerator<TaskInfo, void, void> {
        if (this.id === undefined) return;
        const result = this.result();
        let last: TaskInfo | undefined;
        while (!this.#isOver || last !== this.#latest) {
            const state = this.#latest;
            if (state === last) await new Promise<void>(wake => this.#waiting.push(wake));
            else if (isSame(state, last)) last = state;
            else yield (last = state!);
        }
        if (last && isEnded(last)) return;
        // In 2025-11-25 the end is told by the result alone.
        await result.catch(error => {
            if (error.code !== 'ERR_MCP_PEER') throw error;
        });
        yield this.status();
    }

    #wake(): void {
        for (const wake of this.#waiting.splice(0)) wake();
    }

    async #ask(method: string, options: RequestOptions | undefined): Promise<Record<string, unknown>> {
        if (this.id === undefined) throw new McpError('ERR_MCP_MISUSE', 'the server answered at once: there is no task');
        if (this.#connection.opened.tasks === null) throw new McpError('ERR_MCP_UNSUPPORTED', 'this revision has no tasks');
        return this.#connection.request(method, { taskId: this.id }, options);
    }
}

function isSame(one: TaskInfo | undefined, other: TaskInfo | undefined): boolean {
    return one?.status === other?.status && one?.statusMessage === other?.statusMessage;
}

function isEnded({ status }: TaskInfo): boolean {
    return (ENDED as readonly string[]).includes(status);
}
