import type { McpError } from './errors';
import type { LogMessage } from './protocol';
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
