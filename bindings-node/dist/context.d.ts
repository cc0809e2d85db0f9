import { type LogLevel } from './protocol';
/** A call under way, as its handler sees it. */
export declare class Context<State = unknown> {
    #private;
    /** What `lifespan.start` gave. */
    readonly state: State;
    /**
     * The arguments of a tool or a prompt as they came, in JSON, until the call is answered: for what JavaScript's
     * numbers cannot hold, as integers beyond 2^53, which lose digits in `args`.
     */
    get argumentsJson(): string;
    /** Aborted when the client gives up or goes away; what the handler gives back then is discarded. */
    get signal(): AbortSignal;
    /** Whether the client asked for progress. */
    get wantsProgress(): boolean;
    /**
     * Reports progress, if the client asked for it. It must increase from call to call. Delivered in order, and before
     * the answer.
     */
    progress(progress: number, total?: number, message?: string): void;
    /** Sends a log message, if the client wants messages of that level. `data` is anything that JSON can say. */
    log(level: LogLevel, data: unknown, logger?: string): void;
}
