/** The native module: private to this package. See `src/` for what each function does. */

/** @internal */
export interface NativeOfferOptions {
    instructions?: string;
    listChanges: boolean;
    subscriptions: boolean;
    actions: boolean;
    pageSize?: number;
    cacheMs?: number;
    cacheIsPublic: boolean;
    extensions?: string;
    stateKey?: Uint8Array;
    profile?: string;
    policy?: string;
    experimental?: string;
    delegate?: NativeDelegate;
    tasks?: { count?: number; perOwner?: number; bytes?: number; ttlMs?: number; pollMs?: number };
    maxBytes?: number;
    references?: { overBytes: number; ttlMs?: number };
    lookedAt: string[];
}

/** @internal Another library's server, as it is presented to clients. */
export interface NativeDelegate {
    implementation: string;
    capabilities: string;
    eras: 'handshake' | 'stateless' | 'both';
    opens: boolean;
}

/** @internal */
export interface NativeSkillFile {
    path: string;
    mimeType: string;
    bytes: Uint8Array;
}

/** @internal The encoded answer of a handler. */
export interface NativeMade {
    kind: number;
    text: string;
}

/** @internal */
export interface NativeKeptCall {
    found(): NativeMade | null;
    keep(made: NativeMade): void;
}

/** @internal */
export interface NativeKeptResults {
    forget(tool: string): void;
    forgetAll(): void;
    ask(tool: string, args: string, who?: string): NativeKeptCall | null;
}

/** @internal */
export interface NativeOffer {
    replaceJwtKeys(keys: string): void;
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
    /** Why arguments break the schema of the tool with that number, if they do. */
    misfit(number: number, json: string): string | null;
    isGood(number: number, made: NativeMade): boolean;
    /** With a delegate: lists that the engine answers itself from now on, or no longer. */
    keep(method: string, revision: string, result: string): void;
    forget(method: string): void;
    numberTools(names: string[], numbers: number[]): void;
    tell(notification: string): void;
}

/** @internal */
export type RequestSettings = [
    timeoutMs: number | undefined,
    maxTimeoutMs: number | undefined,
    wantsProgress: boolean,
    meta: string | undefined
];

/** @internal The client of a call. */
export interface NativeCaller {
    pageDone(id: string): void;
}

/** @internal */
export interface NativeActionOptions {
    tool?: string;
    context?: string;
    metadata?: string;
    timeoutMs?: number;
    streamed: boolean;
    wantsPartials: boolean;
    retry?: { tries?: number; baseMs?: number; longestMs?: number };
    breaker?: { failures?: number; pauseMs?: number };
    fallback?: [name: string, params: string];
}

/** @internal */
export interface NativeLink {
    drain(table: Int32Array): string;
    submit(text: string, table: Float64Array, atOnce: boolean): void;
    request(method: string, params: string | undefined, ...settings: RequestSettings): number;
    startTool(params: string, ...settings: RequestSettings): number;
    followTask(id: string): number;
    action(name: string, params: string, options: NativeActionOptions): number;
    actionSchemas(): number;
    actionContext(call: number): string | null;
    principal(call: number): string | null;
    hasScope(call: number, scope: string): boolean;
    cancel(number: number, reason?: string): void;
    strays(): number;
    notify(method: string, params?: string): void;
    stop(): void;
    counts(): string | null;
    /** On a server's link: questions to the client on behalf of a call. */
    ask(call: number, what: number, json: string, name?: string): number | string | null;
    releaseStream(call: number, retryMs: number): void;
    endRound(call: number): boolean;
    beginTask(call: number): boolean;
    isTask(call: number): boolean;
    caller(call: number): NativeCaller | null;
    introduction(call: number): string | null;
    meta(call: number): string;
    missing(call: number, path: string[]): string | null;
    extension(call: number, id: string): string | null;
    /** With a delegate: the HTTP request that brought a call, and any message to a client. */
    head(call: number): string | null;
    askClient(client: number, call: number | undefined, method: string, params: string | undefined, wantsProgress: boolean): number;
    tellClient(client: number, method: string, params?: string): void;
    /** On a wire, which carries messages without an engine connection. */
    say(message: string, settles: boolean): boolean;
    settle(): void;
    pid(): number | null;
    carry(message: string, headers: string[], resume?: string): number;
    endSession(): number;
    /** On a client's link: answers to the server's requests, and requests that the engine builds. */
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
export interface NativeEndpointOptions {
    hosts?: string[];
    origins?: string[];
    anonymous?: boolean;
    cors?: boolean;
    limits?: { messageBytes?: number; depth?: number; inFlight?: number; keepaliveMs?: number; idleMs?: number };
    headerMs?: number;
    commentMs?: number;
    sse?: boolean;
    trustedProxies?: string[];
    maxSessions?: number;
    maxSessionsPerPeer?: number;
    sessionTtlMs?: number;
    actionTtlMs?: number;
    replayBytes?: number;
    websocket?: boolean;
    heartbeatMs?: number;
    graceMs?: number;
    tls?: { certificate: string; key: string; clients?: string };
    threads?: number;
    maxConnections?: number;
    maxConnectionsPerPeer?: number;
}

/** @internal */
export interface NativeMount {
    link(): NativeLink | null;
    begin(method: string, uri: string, headers: string[], peer?: string): number | null;
    body(number: number, piece: Uint8Array): boolean;
    bodyEnd(number: number): void;
    more(number: number): void;
    end(number: number): void;
}

/** @internal */
export interface NativeClientOptions {
    name: string;
    version: string;
    opening?: string;
    profile?: string;
    revision?: string;
    trace: boolean;
    sampling: boolean;
    samplingTools: boolean;
    forms: boolean;
    pages: boolean;
    tasks: boolean;
    checkResults: boolean;
    roots?: string;
    extensions?: string;
}

/** @internal */
export interface NativeChildOptions {
    command: string;
    args: string[];
    cwd?: string;
    env: string[];
    isBare?: boolean;
    stderr?: string;
    closeMs?: number;
}

/** @internal */
export interface NativeCredentials {
    headers: string[];
    auth?: string[];
    protocols?: string[];
    connectMs?: number;
    heartbeatMs?: number;
    certificates: string[];
    certificate?: [string, string];
    redirectOrigins?: string[];
}

/** @internal Decodes messages from a stream. */
export interface NativeDecoder {
    feed(bytes: Uint8Array): void;
    feedBegun(bytes: Uint8Array): number;
    feedEnd(): void;
    drain(table: Int32Array): Buffer | null;
    drainFrom(bytes: Uint8Array, from: number, table: Int32Array): number;
}

/** @internal */
export interface NativeConnectionOptions {
    side: string;
    name: string;
    version: string;
    capabilities: string;
    instructions: string | undefined;
    revisions: string[] | undefined;
    opening: string;
    framing: string;
    maxMessageBytes: number | undefined;
    maxDepth: number | undefined;
    timeoutMs: number | undefined;
    now: number | undefined;
}

/** @internal A connection that a program drives itself. */
export interface NativeEngineConnection {
    feed(bytes: Uint8Array, now?: number): void;
    feedEnd(now?: number): void;
    drain(table: Int32Array): Buffer | null;
    output(now?: number): Buffer | null;
    request(
        method: string,
        params: string | undefined,
        timeoutMs: number | undefined,
        maxTimeoutMs: number | undefined,
        wantsProgress: boolean,
        meta: string | undefined
    ): number;
    cancel(number: number, reason?: string): void;
    notify(method: string, params?: string): void;
    timeout(now?: number): number | null;
    handleTimeout(now?: number): void;
    finish(graceMs: number): void;
    close(): void;
    readonly revision: string | null;
    readonly isClosed: boolean;
    readonly wantsRead: boolean;
    readonly inFlight: number;
    readonly strayCount: number;
    readonly peer: string | null;
    respond(call: number, result: string): boolean;
    fail(call: number, kind: string | undefined, code: number, message: string, data?: string): boolean;
    progress(call: number, progress: number, total?: number, message?: string): void;
    log(call: number, level: string, data: string, logger?: string): void;
}

interface Native {
    Offer: new (
        name: string,
        version: string,
        options: NativeOfferOptions,
        audit?: (event: string) => void
    ) => NativeOffer;
    KeptResults: new (ttlMs: number, isPublic: boolean) => NativeKeptResults;
    decodeMessage(bytes: Uint8Array, maxDepth: number | undefined, table: Int32Array, index: number): void;
    decodeBatch(bytes: Uint8Array, maxDepth: number | undefined, table: Int32Array): number;
    methodNames(): string[];
    faultCodes(): number[];
    faultSentences(): string[];
    Decoder: new (framing: string, maxBytes?: number, maxDepth?: number) => NativeDecoder;
    EngineConnection: new (options: NativeConnectionOptions) => NativeEngineConnection;
    serveStdio(offer: NativeOffer, wake: () => void, graceMs: number, signals: boolean, trace: boolean): NativeLink;
    serveAddress(
        offer: NativeOffer,
        address: string,
        options: NativeEndpointOptions,
        signals: boolean,
        ownsProcess: boolean,
        trace: boolean,
        wake: () => void
    ): NativeLink;
    screen(options: NativeEndpointOptions, method: string, headers: string[]): { status: number; why: string } | null;
    mount(offer: NativeOffer, options: NativeEndpointOptions, trace: boolean, wake: () => void): NativeMount;
    pair(
        offer: NativeOffer,
        wakeServer: () => void,
        options: NativeClientOptions,
        wakeClient: () => void
    ): [NativeLink, NativeLink];
    openAddress(
        options: NativeClientOptions,
        address: string,
        credentials: NativeCredentials,
        wake: () => void
    ): NativeLink;
    commandOf(address: string): string[] | null;
    actionResults(data: string): string;
    wireStdio(wake: () => void, signals: boolean): NativeLink;
    wireChild(child: NativeChildOptions, wake: () => void): NativeLink;
    wireHttp(url: string, session: string | undefined, wake: () => void): NativeLink;
    spawnChild(options: NativeClientOptions, child: NativeChildOptions, wake: () => void): NativeLink;
}

/** Suffixes of the prebuilt packages' names, after platform and processor. */
const ABIS: { readonly [platform: string]: readonly string[] } = { linux: ['-gnu', '-musl'], win32: ['-msvc'] };

/** Loads the module that was built in this folder, or else the one installed for this platform. */
function load(): Native {
    const here = `${process.platform}-${process.arch}`;
    const packages = (ABIS[process.platform] ?? ['']).map(abi => `@mcpbolt/${here}${abi}`);
    let cause: unknown;
    for (const name of [`../mcpbolt.${here}.node`, ...packages]) {
        try {
            return require(name);
        } catch (error) {
            // A module that exists but fails to load tells more than a missing one.
            if (cause === undefined || (error as { code?: string }).code !== 'MODULE_NOT_FOUND') cause = error;
        }
    }
    const message = `mcpbolt has no native module for ${here}: install ${packages.join(' or ')}, or build it from the repository (npm run build)`;
    throw new Error(message, { cause });
}

/** @internal */
export const native: Native = load();
