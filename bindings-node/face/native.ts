/** The native module: private to this package. See `src/` for what each function does. */

/** @internal */
export interface NativeOfferOptions {
    instructions?: string;
    listChanges: boolean;
    subscriptions: boolean;
    pageSize?: number;
    cacheMs?: number;
    cacheIsPublic: boolean;
    extensions?: string;
    stateKey?: Uint8Array;
    tasks?: { count?: number; bytes?: number; ttlMs?: number; pollMs?: number };
}

/** @internal */
export interface NativeSkillFile {
    path: string;
    mimeType: string;
    bytes: Uint8Array;
}

/** @internal */
export interface NativeOffer {
    tool(json: string): number;
    resource(json: string): number;
    template(json: string): number;
    prompt(json: string): number;
    removeTool(name: string): boolean;
    removeResource(uri: string): boolean;
    removeTemplate(template: string): boolean;
    removePrompt(name: string): boolean;
    method(extension: string, name: string): number;
    has(target: number): boolean;
    skill(manifest: string, within: string, files: NativeSkillFile[]): void;
    resourceUpdated(uri: string): void;
}

/** @internal */
export type RequestSettings = [
    timeoutMs: number | undefined,
    maxTimeoutMs: number | undefined,
    wantsProgress: boolean,
    meta: string | undefined
];

/** @internal */
export interface NativeLink {
    drain(table: Int32Array): string;
    submit(text: string, table: Float64Array): void;
    request(method: string, params: string | undefined, ...settings: RequestSettings): number;
    startTool(params: string, ...settings: RequestSettings): number;
    followTask(id: string): number;
    cancel(number: number, reason?: string): void;
    strays(): number;
    notify(method: string, params?: string): void;
    close(): void;
    stop(): void;
    /** A server's: questions to the client on behalf of a call. */
    ask(call: number, what: number, json: string): number | string | null;
    endRound(call: number): boolean;
    beginTask(call: number): boolean;
    isTask(call: number): boolean;
    introduction(call: number): string | null;
    meta(call: number): string;
    missing(call: number, path: string[]): string | null;
    extension(call: number, id: string): string | null;
    pageDone(id: string): void;
    /** A client's: answers to what the server asks, and what is settled with it. */
    answer(number: number, isResult: boolean, text: string): void;
    subscribe(uri: string, wanted: boolean): number;
    listen(json: string): number;
    complete(json: string): number;
    listSkills(): number;
    skill(uri: string): number;
    loadSkill(skill: string): number;
    readSkillFile(skill: string, uri: string): number;
    readFolder(uri: string): number;
    setRoots(json: string): void;
    learnOutputs(json: string): void;
    misfit(tool: string, json: string): string | null;
}

/** @internal */
export interface NativeClientOptions {
    name: string;
    version: string;
    opening?: string;
    revision?: string;
    trace: boolean;
    sampling: boolean;
    samplingTools: boolean;
    forms: boolean;
    pages: boolean;
    tasks: boolean;
    roots?: string;
    extensions?: string;
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
    Offer: new (name: string, version: string, options: NativeOfferOptions) => NativeOffer;
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
