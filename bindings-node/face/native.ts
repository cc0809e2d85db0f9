/** The native module: private to this package. See `src/` for what each function does. */

/** @internal */
export interface NativeOffer {
    tool(json: string): number;
    resource(json: string): number;
    template(json: string): number;
    prompt(json: string): number;
}

/** @internal */
export interface NativeLink {
    drain(table: Int32Array): string;
    submit(text: string, table: Float64Array): void;
    request(
        method: string,
        params: string | undefined,
        timeoutMs: number | undefined,
        maxTimeoutMs: number | undefined,
        wantsProgress: boolean
    ): number;
    cancel(number: number, reason?: string): void;
    strays(): number;
    notify(method: string, params?: string): void;
    close(): void;
    stop(): void;
}

/** @internal */
export interface NativeClientOptions {
    name: string;
    version: string;
    opening?: string;
    revision?: string;
    trace: boolean;
}

/** @internal */
export interface NativeChildOptions {
    command: string;
    args: string[];
    cwd?: string;
    env: string[];
    stderr?: string;
    closeMs?: number;
}

interface Native {
    Offer: new (name: string, version: string, instructions?: string) => NativeOffer;
    serveStdio(offer: NativeOffer, wake: () => void, graceMs: number, signals: boolean, trace: boolean): NativeLink;
    pair(
        offer: NativeOffer,
        wakeServer: () => void,
        options: NativeClientOptions,
        wakeClient: () => void
    ): [NativeLink, NativeLink];
    spawnChild(options: NativeClientOptions, child: NativeChildOptions, wake: () => void): NativeLink;
}

/** @internal */
export const native: Native = require(`../mcpbolt.${process.platform}-${process.arch}.node`);
