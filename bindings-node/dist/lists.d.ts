import { type RequestOptions } from './requests';
export interface ListOptions extends RequestOptions {
    /** Asks the server also where it has said that the last answer may still be used. */
    fresh?: boolean;
}
