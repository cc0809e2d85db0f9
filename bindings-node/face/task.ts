import type { Connection } from './connection';
import { McpError } from './errors';
import type { CallToolResult } from './protocol';
import type { RequestOptions } from './requests';

const ENDED = ['completed', 'failed', 'cancelled'] as const;
const STATUSES = ['working', 'input_required', ...ENDED] as const;

/** The status of a task. */
export type TaskStatus = (typeof STATUSES)[number];

/** A task as the server describes it. */
export interface TaskInfo {
    taskId: string;
    status: TaskStatus;
    /** A sentence on its progress. */
    statusMessage?: string;
    /** When the task was created and last updated, in ISO 8601. */
    createdAt: string;
    lastUpdatedAt: string;
    /** How long the task is kept after its creation, in ms; for ever if `null`. */
    ttl: number | null;
    /** How often to poll, in ms. */
    pollInterval?: number;
}

/** @internal Reads a task in either form. */
export function readTask(json: Record<string, any>): TaskInfo {
    const { taskId, status, statusMessage, createdAt, lastUpdatedAt } = json;
    const pollInterval = json.pollIntervalMs ?? json.pollInterval;
    if (typeof taskId !== 'string' || !STATUSES.includes(status))
        throw new McpError('ERR_MCP_BAD_ANSWER', 'the server sent a task without id or known status');
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

/** @internal The id of the task that a call became, in the form of 2025-11-25 or the later one. */
export function createdTask(answer: Record<string, any>, isCore: boolean): string | undefined {
    if (isCore) return answer.task && readTask(answer.task).taskId;
    return answer.resultType === 'task' ? readTask(answer).taskId : undefined;
}

/** Waits for the result of a task; calls `seen` with each of its states. */
type Follow = (seen: (state: any) => void) => Promise<CallToolResult>;

/**
 * A tool call that runs as a task at the server. `result` and iteration poll at the interval that the server gives, and
 * answer the task's questions with the handlers in the client's options; both share one poll. The signal that was
 * passed with the call stops the polling, not the task.
 */
export class ToolTask implements AsyncIterable<TaskInfo> {
    /** The task's id; `client.task(id)` finds the task again. `undefined` if the server answered the call at once. */
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

    /**
     * Waits for the result of the call. Rejects with `ERR_MCP_CANCELLED` if the task is cancelled, and with the task's
     * error if it fails.
     */
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
            // A caller that only iterates does not await the result.
            this.#result.catch(() => {});
        }
        return this.#result;
    }

    /** Fetches the task's current state. */
    async status(options?: RequestOptions): Promise<TaskInfo> {
        return readTask(await this.#ask('tasks/get', options));
    }

    /** Asks the server to cancel the task. The task may still complete first. */
    async cancel(options?: RequestOptions): Promise<void> {
        await this.#ask('tasks/cancel', options);
    }

    /** Yields the task's state whenever it changes, until the task has ended. */
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
        // In 2025-11-25 only the result reveals the end.
        await result.catch(error => {
            if (error.code !== 'ERR_MCP_PEER') throw error;
        });
        yield this.status();
    }

    #wake(): void {
        for (const wake of this.#waiting.splice(0)) wake();
    }

    async #ask(method: string, options: RequestOptions | undefined): Promise<Record<string, unknown>> {
        if (this.id === undefined) throw new McpError('ERR_MCP_MISUSE', 'the server answered the call at once, without a task');
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
