/**
 * The steps that a call of an `atomic` tool has taken, each with how it is taken back: unless the call comes to a good
 * end, all are, the last one first, before it is answered.
 */
export declare class Steps {
    #private;
    /** Notes how a step that was just taken is taken back; at once, if the call has failed meanwhile. */
    taken(undo: () => unknown): void;
}
