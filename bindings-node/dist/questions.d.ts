/** How a question is asked. */
export interface AskOptions {
    /** The name under which clients of 2026-07-28 see the question, unique within a call. Numbered by default. */
    name?: string;
}
