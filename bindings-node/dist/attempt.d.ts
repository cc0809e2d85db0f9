/**
 * The undo log of one call of an `atomic` tool. Unless the call succeeds, all steps are undone, the last one first,
 * before it is answered.
 */
export declare class Steps {
    #private;
    /** Records how to undo the step that was just taken; undoes it at once if the call has already failed. */
    taken(undo: () => unknown): void;
}
