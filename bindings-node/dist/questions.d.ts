/** How a question is asked. */
export interface AskOptions {
    /**
     * What clients of 2026-07-28 see the question as; the questions of one call have different names. Numbered by
     * default.
     */
    name?: string;
}
