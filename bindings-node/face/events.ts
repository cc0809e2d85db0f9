import type { EventEmitter } from 'node:events';
import type { McpError } from './errors';
import type { Change, LogMessage } from './protocol';

/** The events of a client, with the arguments of their listeners. */
export interface ClientEvents {
    /** The server's tools changed; likewise its prompts and resources. */
    toolsChanged: [];
    promptsChanged: [];
    resourcesChanged: [];
    /** A resource that this client subscribed to, or a part of it, changed. */
    resourceUpdated: [uri: string];
    /** A log message of the server. */
    log: [message: LogMessage];
    /** The user has completed a page; `id` names it. */
    elicitationComplete: [id: string];
    /** Any other notification of the server. */
    notification: [method: string, params: unknown];
    /** The connection has ended. */
    closed: [reason: McpError];
}

/** @internal A parsed notification of the server. */
export interface Notice {
    /** The change that the notification reports, if it reports one. */
    change?: Change;
    /** The id of the stream that carried it, if there is one. */
    stream?: number;
    emit: (to: EventEmitter<ClientEvents>) => void;
}

const CHANGES = {
    'notifications/tools/list_changed': 'toolsChanged',
    'notifications/prompts/list_changed': 'promptsChanged',
    'notifications/resources/list_changed': 'resourcesChanged'
} as const;

const STREAM = 'io.modelcontextprotocol/subscriptionId';

/** @internal Parses a notification. One with unexpected params is emitted as `notification`. */
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
