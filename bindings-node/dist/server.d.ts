import type { RunOptions, RunReport, ServerOptions } from './definitions';
import { Offer } from './offer';
/** A server: what it offers, and the handlers of it. */
export declare class Server<State = undefined> extends Offer<State> {
    #private;
    constructor(name: string, version: string, options?: ServerOptions<State>);
    /**
     * Serves on stdin and stdout until the client goes away, a signal comes or `close` is called. Meanwhile what else
     * the process prints goes to stderr.
     */
    run(options?: RunOptions): Promise<RunReport>;
    /** Ends every connection in good order: what is in flight may still be answered. */
    close(): void;
}
