import type { EventEmitter } from 'node:events';
import type { McpError } from './errors';
import type { Change, LogMessage } from './protocol';

/** What a client emits, and what its listeners are given. */
export interface ClientEvents {
    /** The server's tools are others now; likewise its prompts and resources. */
    toolsChanged: [];
    promptsChanged: [];
    resourcesChanged: [];
    /** A resource that is subscribed to, or a part of it, is another now. */
    resourceUpdated: [uri: string];
    /** A log message of the server. */
    log: [message: LogMessage];
    /** The user has done what a page asked for; the errand's name. */
    elicitationComplete: [id: string];
    /** Any other notification of the server. */
    notification: [method: string, params: unknown];
    /** The connection has ended. */
    closed: [reason: McpError];
}

/** @internal A notification of the server, read. */
export interface Notice {
    /** What changed, if it says so. */
    change?: Change;
    /** The id of the stream that it was told on, if it was. */
    stream?: number;
    emit: (to: EventEmitter<ClientEvents>) => void;
}

const CHANGES = {
    'notifications/tools/list_changed': 'toolsChanged',
    'notifications/prompts/list_changed': 'promptsChanged',
    'notifications/resources/list_changed': 'resourcesChanged'
} as const;

const STREAM = 'io.modelcontextprotocol/subscriptionId';

/** @internal One whose params are not what they should be is of another kind. */
export function readNotice(method: string, params: Record<string, any> = {}): Notice {
    const stream = params._meta?.[STREAM];
    if (Object.hasOwn(CHANGES, method)) {
        const type = CHANGES[method as keyof typeof CHANGES];
        return { change: { type }, stream, emit: to => to.emit(type) };
    }
    const { uri, level, elicitationId: id } = params;
    if (method === 'notifications/resources/updated' && typeof uri === 'string')
        return { change: { type: 'resourceUpdated', uri }, stream, emit: to => to.emit('resourceUpdated', uri) };
    if (method === 'notifications/message' && typeof level === 'string')
        return { emit: to => to.emit('log', params as LogMessage) };
    if (method === 'notifications/elicitation/complete' && typeof id === 'string')
        return { emit: to => to.emit('elicitationComplete', id) };
    return { emit: to => to.emit('notification', method, params) };
}
