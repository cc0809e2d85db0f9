import type { CallToolResult } from './protocol';
import type { RequestOptions } from './requests';
declare const STATUSES: readonly ["working", "input_required", "completed", "failed", "cancelled"];
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
/**
 * The call of a tool that goes on as a task at the server. `result` and iterating over it ask as often as the server
 * says, and have the handlers of the client's options answer what the task asks meanwhile; both share what they learn.
 * The signal that was given with the call stops that, not the task.
 */
export declare class ToolTask implements AsyncIterable<TaskInfo> {
    #private;
    /** Its id, to be kept: `client.task(id)` finds it again. `undefined` when the server answered the call at once. */
    readonly id: string | undefined;
    /** What the call comes to. Fails with `ERR_MCP_CANCELLED` when the task is given up, with its error if it fails. */
    result(): Promise<CallToolResult>;
    /** Asks how far it is. */
    status(options?: RequestOptions): Promise<TaskInfo>;
    /** Asks the server to give it up. It may be done before it does. */
    cancel(options?: RequestOptions): Promise<void>;
    /** How far it is, whenever that changes, until it has ended. */
    [Symbol.asyncIterator](): AsyncGenerator<TaskInfo, void, void>;
}
export {};
