import { type RequestOptions } from './requests';
export interface StartOptions extends RequestOptions {
    /** How long the server should keep the task, in ms; only where the client asks for tasks (2025-11-25). */
    ttl?: number;
}
