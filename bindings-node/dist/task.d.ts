import type { CallToolResult } from './protocol';
import type { RequestOptions } from './requests';
declare const STATUSES: readonly ["working", "input_required", "completed", "failed", "cancelled"];
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
/**
 * A tool call that runs as a task at the server. `result` and iteration poll at the interval that the server gives, and
 * answer the task's questions with the handlers in the client's options; both share one poll. The signal that was
 * passed with the call stops the polling, not the task.
 */
export declare class ToolTask implements AsyncIterable<TaskInfo> {
    #private;
    /** The task's id; `client.task(id)` finds the task again. `undefined` if the server answered the call at once. */
    readonly id: string | undefined;
    /**
     * Waits for the result of the call. Rejects with `ERR_MCP_CANCELLED` if the task is cancelled, and with the task's
     * error if it fails.
     */
    result(): Promise<CallToolResult>;
    /** Fetches the task's current state. */
    status(options?: RequestOptions): Promise<TaskInfo>;
    /** Asks the server to cancel the task. The task may still complete first. */
    cancel(options?: RequestOptions): Promise<void>;
    /** Yields the task's state whenever it changes, until the task has ended. */
    [Symbol.asyncIterator](): AsyncGenerator<TaskInfo, void, void>;
}
export {};
