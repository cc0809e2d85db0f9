import { type RequestOptions } from './requests';
export interface ListOptions extends RequestOptions {
    /** Fetches the list even if a cached one is still valid. */
    fresh?: boolean;
}
