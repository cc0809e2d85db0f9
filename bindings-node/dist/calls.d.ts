import { type RequestOptions } from './requests';
export interface StartOptions extends RequestOptions {
    /** How long the server is to keep the task, in ms, where the client asks for it (2025-11-25). */
    ttl?: number;
}
