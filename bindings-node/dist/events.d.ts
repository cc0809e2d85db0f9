import type { McpError } from './errors';
import type { LogMessage } from './protocol';
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
