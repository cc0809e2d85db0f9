// The public types of this package, written by scripts/api.mjs.
// mcpbolt: ActionAnswer, ActionError, ActionErrorDetails, ActionNotes, ActionOptions, Annotations, Answers, Approval, ApprovalCall, ApprovalOptions, Approve, AskOptions, Asked, AssertionRequest, AuditEvent, AuditQueue, Auth, AuthorizationPage, Block, Breaker, BreakerOptions, BreakerPolicy, Call, CallOf, CallReports, CallToolResult, CarrierFault, ChainDirection, ChainMessage, ChainMiddleware, ChainNext, Change, Clean, Client, ClientEvents, ClientInfo, ClientOptions, Completer, CompletionTarget, Completions, ConnectOptions, ConsentProxy, ContentBlock, Context, Counts, CredentialStore, Credentials, Described, DeviceCode, Endpoint, EndpointOptions, ErrorCode, Exit, External, ExternalOptions, FormRequest, FormResult, Front, FrontOptions, GetPromptResult, Granted, Handler, Icon, Implementation, Integers, Interests, Issuer, Json, JsonSchema, Jwt, JwtKey, LEVELS, ListOptions, Listening, LogLevel, LogMessage, LogRecord, Logger, LoginCall, LoginStep, Masking, MaskingOptions, McpError, Middleware, Next, OAuth, OAuthOptions, PageRequest, PageResult, Patterns, PermissionManager, PinDrift, Pins, PinsOptions, Policy, Pool, PoolClientOptions, PoolCounts, PoolOptions, PoolTarget, Prefix, Principal, Profile, Progress, Prompt, PromptArgument, PromptDefinition, PromptMessage, PromptOutput, ProtocolError, References, Replies, RequestOptions, Resource, ResourceContents, ResourceDefinition, ResourceOutput, ResourceServer, ResourceTemplate, ResourceTemplateDefinition, Results, Retry, RetryOptions, RetryPolicy, Revision, Root, Rule, RunAtOptions, RunOptions, RunReport, SamplingBlock, SamplingMessage, SamplingOutput, SamplingRequest, SamplingResult, Schema, ServeOptions, Server, ServerOptions, Serving, Shape, Skill, SkillFile, Skills, SpawnOptions, StandardSchema, StartOptions, Steps, TaskInfo, TaskLimits, TaskStatus, TaskSupport, Tool, ToolAnnotations, ToolDefinition, ToolError, ToolOutput, ToolTask, Trace, Upstream, UpstreamCall, Verifier, audio, image, json, link, oauth, prompt, resource, text, toolPin
// mcpbolt/sdk: Accelerated, AccelerationReport, CreateMcpHandlerOptions, McpHttpHandler, McpRequestContext, McpServerFactory, NodeStreamableHTTPServerTransport, SdkServer, ServerNotifier, StdioClientTransport, StdioServerParameters, StdioServerTransport, StreamableHTTPClientTransport, StreamableHTTPClientTransportOptions, StreamableHTTPError, StreamableHTTPServerTransport, StreamableHTTPServerTransportOptions, WebStandardStreamableHTTPServerTransport, accelerate, createMcpHandler
// mcpbolt/engine: Connection, ConnectionOptions, Decoder, DecoderOptions, Event, FailureKind, Framing, Id, Integers, Json, McpError, Message, MessageKind, ReadOptions, Request, SendOptions, Stray, decode, encodeError, encodeNotification, encodeRequest, encodeResponse, json
// mcpbolt/testing: Noted, TestContext, TestOptions, Tester, connect, snapshot

declare abstract class HttpServerTransport implements SdkTransport {
    #private;
    onclose?: () => void;
    onerror?: (error: Error) => void;
    onmessage?: (message: any, extra?: any) => void;
    sessionId: string | undefined;
    constructor(options?: StreamableHTTPServerTransportOptions);
    start(): Promise<void>;
    setSupportedProtocolVersions(_: string[]): void;
    send(message: Message, options?: SendOptions): Promise<void>;
    closeSSEStream(requestId: Id): void;
    close(): Promise<void>;
}
declare abstract class Pipes implements SdkTransport {
    #private;
    onclose?: () => void;
    onerror?: (error: Error) => void;
    onmessage?: (message: any, extra?: any) => void;
    start(): Promise<void>;
    send(message: Message): Promise<void>;
    close(): Promise<void>;
}
declare const STATUSES: readonly [
    "working",
    "input_required",
    "completed",
    "failed",
    "cancelled"
];
export declare abstract class Actions extends Connection {
    #private;
    action<Data = any>(name: string, params?: object | Json, options?: ActionOptions): Promise<ActionAnswer<Data>>;
    actionBatch(operations: Iterable<readonly [
        name: string,
        params: object
    ]>, { continueOnError, ...options }?: ActionOptions & {
        continueOnError?: boolean;
    }): Promise<ActionAnswer>;
    actionSchemas(): Promise<Record<string, any>>;
    actionVersion(): Promise<Record<string, any>>;
    actionHealth(): Promise<void>;
}
export declare abstract class Connection extends EventEmitter<ClientEvents> implements AsyncDisposable {
    #private;
    get revision(): Revision;
    get server(): Implementation | undefined;
    get capabilities(): Record<string, unknown>;
    get instructions(): string | undefined;
    get strayCount(): number;
    get closed(): McpError | undefined;
    ping(options?: RequestOptions): Promise<void>;
    notify(method: string, params?: object | Json): void;
    request<Result = any>(method: string, params?: object | Json, options?: RequestOptions): Promise<Result>;
    requestJson(method: string, params?: object | Json, options?: RequestOptions): Promise<string>;
    unref(): this;
    ref(): this;
    close(): Promise<Exit>;
    [Symbol.asyncDispose](): Promise<void>;
}
export declare abstract class Entries<State> {
    #private;
    replaceJwtKeys(keys: Readonly<Record<string, JwtKey>>): void;
    tool<S extends object>(name: string, definition: Omit<ToolDefinition, 'inputSchema'> & {
        inputSchema: S;
    }, handler: (args: Described<S>, context: Context<State>, steps: Steps) => Awaitable<ToolOutput>): this;
    tool<Args = Record<string, any>>(name: string, definition: ToolDefinition, handler: (args: Args, context: Context<State>, steps: Steps) => Awaitable<ToolOutput>): this;
    resource(uri: string, definition: ResourceDefinition, handler: (uri: string, context: Context<State>) => Awaitable<ResourceOutput>): this;
    resourceTemplate(template: string, definition: ResourceTemplateDefinition<State>, handler: (uri: string, variables: Record<string, string>, context: Context<State>) => Awaitable<ResourceOutput>): this;
    prompt(name: string, definition: PromptDefinition<State>, handler: (args: Record<string, string>, context: Context<State>) => Awaitable<PromptOutput>): this;
    extensionMethod<Params = Record<string, any>>(extension: string, method: string, handler: (params: Params, context: Context<State>) => Awaitable<object>): this;
    skills(folder: string | URL): this;
    removeTool(name: string): boolean;
    removeResource(uri: string): boolean;
    removeResourceTemplate(template: string): boolean;
    removePrompt(name: string): boolean;
    resourceUpdated(uri: string | URL): void;
    use(...middleware: Middleware<State>[]): this;
    mount(prefix: string, server: Entries<any>): this;
}
export declare class Accelerated {
    #private;
    run(options?: RunOptions): Promise<RunReport>;
    run(address: string | URL, options?: RunAtOptions): Promise<RunReport>;
    serve(address: string | URL, options?: ServeOptions): Promise<Serving>;
    handler(options?: EndpointOptions): Handler;
    fetch(request: Request): Promise<Response>;
    close(): void;
    report(): AccelerationReport;
}
export declare class ActionAnswer<Data = any> {
    readonly data: Data;
    readonly metadata: Readonly<Record<string, any>>;
    readonly partials: readonly any[];
    joined(member: string): string;
    results(): (any | ActionError)[];
}
export declare class ActionError extends McpError {
    readonly name: string;
    readonly type: string;
    readonly kind?: string;
    readonly metadata?: Record<string, unknown>;
    constructor(type: string, message?: string, details?: ActionErrorDetails);
}
export declare class Approval {
    #private;
    constructor(tools: readonly string[], { approve, timeout }?: ApprovalOptions);
}
export declare class Block {
    readonly block: ContentBlock;
    toJSON(): ContentBlock;
}
export declare class Breaker {
    #private;
    constructor(options?: BreakerOptions);
    get isOpen(): boolean;
}
export declare class CallReports {
    #private;
    constructor(report: (call: UpstreamCall) => unknown);
}
export declare class Client extends Actions {
    #private;
    readonly skills: Skills;
    private constructor();
    static spawn(command: string, args?: readonly string[], options?: SpawnOptions): Promise<Client>;
    static connect(address: string | URL, options?: ConnectOptions): Promise<Client>;
    static connect(server: Server<any> | Front, options?: ClientOptions): Promise<Client>;
    listTools(options?: ListOptions): Promise<Tool[]>;
    toolPages(options?: RequestOptions): AsyncGenerator<Tool[], void, void>;
    callTool(name: string, args?: object | Json, options?: RequestOptions): Promise<CallToolResult>;
    startTool(name: string, args?: object | Json, options?: StartOptions): Promise<ToolTask>;
    task(id: string, options?: Pick<RequestOptions, 'signal'>): ToolTask;
    listTasks(options?: RequestOptions): Promise<TaskInfo[]>;
    listResources(options?: ListOptions): Promise<Resource[]>;
    resourcePages(options?: RequestOptions): AsyncGenerator<Resource[], void, void>;
    listResourceTemplates(options?: ListOptions): Promise<ResourceTemplate[]>;
    resourceTemplatePages(options?: RequestOptions): AsyncGenerator<ResourceTemplate[], void, void>;
    readResource(uri: string, options?: RequestOptions): Promise<ResourceContents[]>;
    listPrompts(options?: ListOptions): Promise<Prompt[]>;
    promptPages(options?: RequestOptions): AsyncGenerator<Prompt[], void, void>;
    getPrompt(name: string, args?: Record<string, string>, options?: RequestOptions): Promise<GetPromptResult>;
    complete(target: CompletionTarget, argument: string, value: string, args?: Record<string, string>, options?: Pick<RequestOptions, 'signal'>): Promise<Completions>;
    subscribe(uri: string | URL, options?: Pick<RequestOptions, 'signal'>): Promise<void>;
    unsubscribe(uri: string | URL, options?: Pick<RequestOptions, 'signal'>): Promise<void>;
    listen(interests: Interests, { signal }?: Pick<RequestOptions, 'signal'>): Promise<Listening>;
    setRoots(roots: readonly (Root | string)[]): void;
    setLogLevel(level: LogLevel, options?: RequestOptions): Promise<void>;
}
export declare class Connection {
    #private;
    constructor(options: ConnectionOptions);
    feed(data: Uint8Array | string, now?: number): void;
    feedEnd(now?: number): void;
    drain(): Event[];
    output(now?: number): Buffer | undefined;
    request(method: string, params?: object | Json, options?: SendOptions): number;
    cancel(number: number, reason?: string): void;
    notify(method: string, params?: object | Json): void;
    timeout(now?: number): number | undefined;
    handleTimeout(now?: number): void;
    finish(graceMs: number): void;
    close(): void;
    get revision(): Revision | undefined;
    get peer(): {
        info: Implementation | null;
        capabilities: Record<string, unknown>;
    } | undefined;
    get isClosed(): boolean;
    get wantsRead(): boolean;
    get inFlight(): number;
    get strayCount(): number;
}
export declare class Context<State = unknown> {
    #private;
    readonly state: State;
    get argumentsJson(): string;
    get signal(): AbortSignal;
    get wantsProgress(): boolean;
    progress(progress: number, total?: number, message?: string): void;
    partial(data: unknown): void;
    get actionContext(): string | undefined;
    get principal(): string | undefined;
    hasScope(scope: string): boolean;
    beginTask(): boolean;
    get isTask(): boolean;
    taskMessage(message: string): void;
    log(level: LogLevel, data: unknown, logger?: string): void;
    debug(data: unknown, logger?: string): void;
    info(data: unknown, logger?: string): void;
    warning(data: unknown, logger?: string): void;
    error(data: unknown, logger?: string): void;
    elicit<S extends object>(message: string, schema: S, options?: AskOptions): Promise<FormResult<Described<S, Record<string, unknown>>>>;
    elicit<Content = Record<string, unknown>>(message: string, schema: Schema, options?: AskOptions): Promise<FormResult<Content>>;
    elicitUrl(message: string, url: string | URL, id?: string, options?: AskOptions): Promise<PageResult>;
    elicitationComplete(id: string): void;
    sample(request: SamplingRequest<SamplingMessage[] | string>, options?: AskOptions): Promise<SamplingResult>;
    roots(options?: AskOptions): Promise<Root[]>;
    releaseStream(retryMs: number): void;
    extension(id: string): object | undefined;
    get client(): ClientInfo;
    get revision(): Revision;
    get meta(): Readonly<Record<string, unknown>>;
    require(...path: string[]): void;
}
export declare class Decoder {
    #private;
    constructor({ framing, maxMessageBytes, maxDepth, integers }?: DecoderOptions);
    feed(data: Uint8Array): this;
    feedEnd(): this;
    drain(): Message[];
}
export declare class Endpoint {
    #private;
    readonly handler: Handler;
    readonly fetch: (request: Request) => Promise<Response>;
    close(): void;
}
export declare class External {
    #private;
    readonly name: string;
    constructor(server: string | URL | readonly string[] | Server<any> | Front, options?: ExternalOptions);
}
export declare class Front {
    #private;
    constructor(external: External, options?: FrontOptions);
    get name(): string;
    join(external: External): this;
    run(address?: string | URL, options?: RunAtOptions): Promise<RunReport>;
    serve(address: string | URL, options?: ServeOptions): Promise<Serving>;
    endpoint(options?: EndpointOptions): Endpoint;
    handler(options?: EndpointOptions): Handler;
    fetch(request: Request): Promise<Response>;
    close(): void;
}
export declare class Json {
    readonly text: string;
}
export declare class Listening implements AsyncIterableIterator<Change>, AsyncDisposable {
    #private;
    close(): Promise<void>;
    get isClosed(): boolean;
    next(): Promise<IteratorResult<Change>>;
    return(): Promise<IteratorResult<Change>>;
    [Symbol.asyncIterator](): this;
    [Symbol.asyncDispose](): Promise<void>;
}
export declare class Masking {
    #private;
    constructor(patterns: readonly string[], options?: MaskingOptions);
}
export declare class McpError extends Error {
    readonly name: string;
    readonly code: ErrorCode;
    constructor(code: ErrorCode, message: string, options?: Details & {
        cause?: unknown;
    });
}
export declare class Message {
    #private;
    get kind(): MessageKind;
    get id(): Id | undefined;
    get rawId(): string | undefined;
    get method(): string | undefined;
    get params(): any;
    get result(): any;
    get error(): {
        code: number;
        message: string;
        data?: unknown;
    } | undefined;
    get rawParams(): Buffer | undefined;
    get rawResult(): Buffer | undefined;
    get rawArguments(): Buffer | undefined;
    get raw(): Buffer;
    get name(): string | undefined;
    get uri(): string | undefined;
    get progressToken(): Id | undefined;
    get fault(): string | undefined;
    get code(): number | undefined;
    get invitesAnswer(): boolean;
    messages(): Message[];
    withId(id: Id | Json): Buffer;
    [inspect.custom](): string;
}
export declare class OAuth {
    #private;
}
export declare class PermissionManager {
    #private;
    constructor(config: NonNullable<Policy['permissions']>);
    canAccessResource(uri: string): boolean;
    canExecuteTool(tool: string): boolean;
}
export declare class Pins {
    #private;
    constructor(pins: Readonly<Record<string, string>>, { onDrift }?: PinsOptions);
}
export declare class Pool implements AsyncDisposable {
    #private;
    constructor(options?: PoolOptions);
    get counts(): PoolCounts;
    use<Result>(target: PoolTarget, act: (client: Client) => Result | Promise<Result>): Promise<Result>;
    use<Result>(target: PoolTarget, options: PoolClientOptions, act: (client: Client) => Result | Promise<Result>): Promise<Result>;
    acquire(target: PoolTarget, options?: PoolClientOptions): Promise<Client>;
    release(client: Client, { discard }?: {
        discard?: boolean;
    }): void;
    close(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}
export declare class Prefix {
    #private;
    constructor(prefix: string);
}
export declare class ProtocolError extends Error {
    readonly name = "ProtocolError";
    readonly kind: 'internal' | 'invalid params' | 'not found' | 'missing capability' | number;
    readonly data?: unknown;
    constructor(kind: ProtocolError['kind'], message: string, data?: unknown);
}
export declare class Request {
    #private;
    readonly type = "request";
    readonly message: Message;
    readonly revision: Revision;
    readonly wantsProgress: boolean;
    get isCancelled(): boolean;
    get isOpen(): boolean;
    respond(result: object | Json): void;
    fail(kind: FailureKind, message: string, data?: unknown): void;
    progress(progress: number, total?: number, message?: string): void;
    log(level: LogLevel, data: unknown, logger?: string): void;
}
export declare class Results {
    readonly ttl: number;
    constructor(ttl: number, { scope }?: {
        scope?: 'public' | 'private';
    });
    forget(tool: string): void;
    forgetAll(): void;
}
export declare class Retry {
    #private;
    constructor(times: number, options?: RetryOptions);
}
export declare class Server<State = undefined> extends Entries<State> {
    #private;
    constructor(name: string, version: string, options?: ServerOptions<State>);
    mount(prefix: string, server: Entries<any> | External): this;
    run(options?: RunOptions): Promise<RunReport>;
    run(address: string | URL, options?: RunAtOptions): Promise<RunReport>;
    serve(address: string | URL, options?: ServeOptions): Promise<Serving>;
    endpoint(options?: EndpointOptions): Endpoint;
    handler(options?: EndpointOptions): Handler;
    fetch(request: Request): Promise<Response>;
    close(): void;
}
export declare class Serving implements AsyncDisposable {
    #private;
    readonly address: string;
    get ended(): Promise<RunReport>;
    get counts(): Counts;
    close(): Promise<RunReport>;
    unref(): this;
    ref(): this;
    [Symbol.asyncDispose](): Promise<void>;
}
export declare class Skills {
    #private;
    list(options?: Options): Promise<Skill[]>;
    get(uri: string, options?: Options): Promise<Skill>;
    load(skill: Skill, options?: Options): Promise<string>;
    read(skill: Skill, uri: string, options?: Options): Promise<Uint8Array>;
    folder(uri: string, options?: Options): Promise<Resource[]>;
}
export declare class StdioClientTransport extends Pipes {
    #private;
    constructor(server: StdioServerParameters);
    get stderr(): Stream | null;
    get pid(): number | null;
}
export declare class StdioServerTransport extends Pipes {
    constructor(stdin?: unknown, stdout?: unknown);
}
export declare class Steps {
    #private;
    taken(undo: () => unknown): void;
}
export declare class StreamableHTTPClientTransport implements SdkTransport {
    #private;
    onclose?: () => void;
    onerror?: (error: Error) => void;
    onmessage?: (message: any, extra?: any) => void;
    readonly hasPerRequestStream = true;
    constructor(url: URL | string, options?: StreamableHTTPClientTransportOptions);
    get sessionId(): string | undefined;
    get protocolVersion(): string | undefined;
    setProtocolVersion(version: string): void;
    start(): Promise<void>;
    send(message: Message, options?: SendOptions): Promise<void>;
    resumeStream(lastEventId: string, options?: {
        onresumptiontoken?: (token: string) => void;
    }): Promise<void>;
    terminateSession(): Promise<void>;
    close(): Promise<void>;
}
export declare class StreamableHTTPError extends Error {
    readonly code: number | undefined;
}
export declare class StreamableHTTPServerTransport extends HttpServerTransport {
    handleRequest(request: IncomingMessage & {
        auth?: unknown;
    }, response: ServerResponse, parsedBody?: unknown): Promise<void>;
}
export declare class ToolError extends Error {
    readonly name = "ToolError";
}
export declare class ToolTask implements AsyncIterable<TaskInfo> {
    #private;
    readonly id: string | undefined;
    result(): Promise<CallToolResult>;
    status(options?: RequestOptions): Promise<TaskInfo>;
    cancel(options?: RequestOptions): Promise<void>;
    [Symbol.asyncIterator](): AsyncGenerator<TaskInfo, void, void>;
}
export declare class WebStandardStreamableHTTPServerTransport extends HttpServerTransport {
    handleRequest(request: Request, options?: {
        authInfo?: unknown;
        parsedBody?: unknown;
    }): Promise<Response>;
}
export declare const LEVELS: readonly [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency"
];
export declare const prompt: {
    user: (content: string | Block) => {
        role: "user";
        content: ContentBlock;
    };
    assistant: (content: string | Block) => {
        role: "assistant";
        content: ContentBlock;
    };
};
export declare function accelerate(server: SdkServer): Accelerated;
export declare function audio(data: Uint8Array, mimeType: string): Block;
export declare function connect(server: Server<any>, { test, ...options }?: TestOptions): Promise<Tester>;
export declare function createMcpHandler(factory: McpServerFactory, options?: CreateMcpHandlerOptions): McpHttpHandler;
export declare function decode(data: Uint8Array | string, { integers, maxDepth }?: ReadOptions): Message;
export declare function encodeError(id: Id | Json | null | undefined, code: number, message: string, data?: unknown): string;
export declare function encodeNotification(method: string, params?: object | Json): string;
export declare function encodeRequest(id: Id | Json, method: string, params?: object | Json): string;
export declare function encodeResponse(id: Id | Json, result: object | Json): string;
export declare function image(data: Uint8Array, mimeType: string): Block;
export declare function json(text: string): Json;
export declare function link(uri: string, name: string, mimeType?: string): Block;
export declare function oauth(options?: OAuthOptions): OAuth;
export declare function resource(uri: string, contents: string | Uint8Array, mimeType?: string): Block;
export declare function snapshot(value: unknown): any;
export declare function text(value: string): Block;
export declare function toolPin(tool: object): string;
export interface AccelerationReport {
    native: string[];
    sdk: {
        what: string;
        why: string;
    }[];
}
export interface ActionError extends ActionErrorDetails {
}
export interface ActionErrorDetails {
    readonly details?: any;
    readonly actionCode?: number;
    readonly helpUrl?: string;
}
export interface ActionNotes {
    examples?: readonly object[];
    errors?: readonly string[];
    help_url?: string;
    deprecated?: string;
    atomic?: boolean;
    [more: string]: unknown;
}
export interface ActionOptions extends Pick<RequestOptions, 'signal' | 'timeout'> {
    tool?: string;
    context?: string;
    metadata?: Readonly<Record<string, unknown>>;
    onPartial?: (part: any) => void;
    streamed?: boolean;
    retry?: RetryPolicy;
    breaker?: BreakerPolicy;
    fallback?: readonly [
        name: string,
        params: object | Json
    ];
}
export interface Annotations {
    audience?: readonly ('user' | 'assistant')[];
    priority?: number;
    lastModified?: string;
}
export interface Answers extends AnswersOf<Client> {
}
export interface AnswersOf<Client> {
    onSampling?: (request: SamplingRequest, asked: AskedOf<Client>) => Awaitable<SamplingOutput>;
    samplingTools?: boolean;
    onElicitation?: (request: FormRequest, asked: AskedOf<Client>) => Awaitable<FormResult>;
    onElicitationUrl?: (request: PageRequest, asked: AskedOf<Client>) => Awaitable<PageResult>;
    roots?: readonly (Root | string)[];
    logger?: Logger;
    onError?: (error: unknown, what: string) => unknown;
}
export interface ApprovalCall {
    readonly tool: string;
    readonly arguments: Readonly<Record<string, any>>;
    readonly revision: string;
    readonly principal?: string;
    readonly signal: AbortSignal;
}
export interface ApprovalOptions {
    approve?: (call: ApprovalCall) => boolean | string | Promise<boolean | string>;
    timeout?: number;
}
export interface AskOptions {
    name?: string;
}
export interface Asked extends AskedOf<Client> {
}
export interface AskedOf<Client> {
    readonly signal: AbortSignal;
    readonly client: Client;
}
export interface AssertionRequest {
    readonly issuer: string;
    readonly resource: string;
}
export interface AuditEvent {
    method: string;
    name: string;
    principal: string | null;
    id: string;
    revision: Revision;
    outcome: 'done' | 'tool_failed' | 'failed' | 'denied' | 'limited' | 'timed_out' | 'cancelled';
    code: number | null;
    message: string | null;
    seconds: number;
    arguments: string | null;
    dropped: number;
}
export interface AuditQueue {
    events?: number;
    whenFull?: 'wait' | 'drop' | 'refuse';
}
export interface AuthorizationPage {
    readonly url: string;
    readonly redirectUri: string;
    readonly state: string;
}
export interface BreakerOptions {
    failures?: number;
    window?: number;
    rest?: number;
}
export interface BreakerPolicy {
    failures?: number;
    pause?: number;
}
export interface CallOf<Method extends keyof Replies, State = any> {
    readonly method: Method;
    readonly name: Method extends `${string}/list` ? undefined : string;
    arguments: Readonly<Record<string, any>>;
    readonly context: Context<State>;
    readonly principal: string | undefined;
}
export interface CallToolResult {
    content: ContentBlock[];
    structuredContent?: unknown;
    isError?: boolean;
    [more: string]: unknown;
}
export interface ChainMessage {
    jsonrpc?: '2.0';
    id?: string | number;
    method?: string;
    params?: any;
    result?: any;
    error?: {
        code: number;
        message: string;
        data?: unknown;
    };
}
export interface ChainMiddleware {
    request?(message: ChainMessage, next: ChainNext): ChainMessage | Promise<ChainMessage>;
    response?(message: ChainMessage, next: ChainNext): unknown;
    notification?(message: ChainMessage, next: ChainNext): unknown;
}
export interface ChainNext {
    (message: ChainMessage): Promise<ChainMessage>;
    readonly direction: ChainDirection;
    readonly revision?: string;
    readonly principal?: string;
    readonly request?: ChainMessage;
    readonly signal: AbortSignal;
}
export interface ClientEvents {
    toolsChanged: [
    ];
    promptsChanged: [
    ];
    resourcesChanged: [
    ];
    resourceUpdated: [
        uri: string
    ];
    log: [
        message: LogMessage
    ];
    elicitationComplete: [
        id: string
    ];
    notification: [
        method: string,
        params: unknown
    ];
    closed: [
        reason: McpError
    ];
}
export interface ClientInfo {
    revision: Revision;
    connection: number | undefined;
    info: Implementation | undefined;
    capabilities: Record<string, unknown>;
}
export interface ClientOptions extends ClientOptionsOf<Client> {
}
export interface ClientOptionsOf<Client> extends AnswersOf<Client> {
    name?: string;
    version?: string;
    opening?: 'probe' | 'handshake' | 'stateless' | 'actions';
    profile?: Profile;
    revision?: Revision;
    timeout?: number;
    integers?: Integers;
    tasks?: boolean;
    checkResults?: boolean;
    extensions?: Readonly<Record<string, object>>;
    trace?: Trace;
    telemetry?: boolean;
    on?: {
        readonly [Name in keyof ClientEvents]?: (...args: ClientEvents[Name]) => void;
    };
}
export interface Completions {
    values: string[];
    total?: number;
    hasMore?: boolean;
}
export interface ConnectOptions extends ConnectOptionsOf<Client> {
}
export interface ConnectOptionsOf<Client> extends ClientOptionsOf<Client> {
    headers?: Readonly<Record<string, string>>;
    auth?: Auth | OAuth;
    protocols?: readonly string[];
    connectTimeout?: number;
    redirectOrigins?: readonly string[];
    heartbeat?: number;
    ca?: string | readonly string[];
    cert?: string;
    key?: string;
}
export interface ConnectionOptions extends DecoderOptions {
    side: 'server' | 'client';
    name: string;
    version?: string;
    capabilities?: object;
    instructions?: string;
    revisions?: readonly Revision[];
    opening?: 'probe' | 'handshake' | 'stateless';
    timeout?: number;
    now?: number;
}
export interface ConsentProxy {
    issuer: string;
    resource: string;
    secret: string;
    upstream: Upstream;
    name?: string;
    scopes?: readonly string[];
    redirectHosts?: readonly string[];
    tokenLifetime?: number;
    refreshLifetime?: number;
}
export interface Counts {
    openConnections: number;
    connections: number;
    webSockets: number;
    httpRequests: number;
    httpErrors: number;
    bytesRead: number;
    bytesWritten: number;
}
export interface CreateMcpHandlerOptions {
    legacy?: 'stateless' | 'reject';
    onerror?: (error: Error) => void;
    keepAliveMs?: number;
    maxRequestBodySize?: number;
    hosts?: readonly string[];
    origins?: readonly string[];
    responseMode?: 'auto' | 'json';
}
export interface CredentialStore {
    load(key: string): Awaitable<string | null | undefined>;
    save(key: string, document: string): Awaitable<unknown>;
    remove(key: string): Awaitable<unknown>;
    lock?(key: string): Awaitable<() => unknown>;
}
export interface DecoderOptions extends ReadOptions {
    framing?: Framing;
    maxMessageBytes?: number;
}
export interface DeviceCode {
    readonly userCode: string;
    readonly verificationUri: string;
    readonly verificationUriComplete?: string;
    readonly expiresIn: number;
}
export interface EndpointOptions {
    hosts?: readonly string[];
    origins?: readonly string[];
    cors?: boolean;
    maxMessageBytes?: number;
    maxDepth?: number;
    maxIncoming?: number;
    keepaliveInterval?: number;
    idleTimeout?: number;
    sse?: boolean;
    trustedProxies?: readonly string[];
    maxSessions?: number;
    maxSessionsPerPeer?: number;
    sessionTtl?: number;
    actionTtl?: number;
    replayBytes?: number;
    commentInterval?: number;
    grace?: number;
    store?: {
        url: string;
        keys: string;
        prefix?: string;
        ca?: string;
    };
    trace?: Trace;
}
export interface Exit {
    code: number | null;
    signal: number | null;
}
export interface ExternalOptions extends Pick<ConnectOptionsOf<any>, 'headers' | 'auth' | 'protocols' | 'connectTimeout' | 'redirectOrigins' | 'heartbeat' | 'ca' | 'cert' | 'key'>, Pick<SpawnOptionsOf<any>, 'cwd' | 'env' | 'closeTimeout'> {
    name?: string;
    prefix?: string;
    isolation?: 'session' | 'principal' | 'shared';
    maxConnections?: number;
    rules?: readonly Rule[];
    stderr?: 'inherit' | 'ignore';
    opening?: 'probe' | 'handshake' | 'stateless';
    revision?: Revision;
    timeout?: number;
    maxTimeout?: number;
}
export interface FormRequest {
    mode?: 'form';
    message: string;
    requestedSchema: JsonSchema;
}
export interface FrontOptions {
    middleware?: readonly (ChainMiddleware | Prefix | Rule)[];
    hookTimeout?: number;
    policy?: Policy;
    maxHops?: number;
    telemetry?: boolean;
    patience?: number;
    onError?: (error: unknown, what: string) => unknown;
    logger?: Logger;
}
export interface GetPromptResult {
    description?: string;
    messages: PromptMessage[];
    [more: string]: unknown;
}
export interface Granted {
    client: string;
    scopes?: readonly string[];
}
export interface Icon {
    src: string;
    mimeType?: string;
    sizes?: readonly string[];
    theme?: 'light' | 'dark';
}
export interface Implementation {
    name: string;
    version: string;
    title?: string;
    [more: string]: unknown;
}
export interface Interests {
    tools?: boolean;
    prompts?: boolean;
    resources?: boolean;
    uris?: readonly string[];
}
export interface Issuer {
    issuer: string;
    jwks?: string;
    introspection?: {
        url: string;
        clientId: string;
        clientSecret: string;
    };
}
export interface Jwt extends Partial<JwtKey> {
    keys?: Readonly<Record<string, JwtKey>>;
    issuer?: string | readonly string[];
    anyIssuer?: boolean;
    audience?: string | readonly string[];
    anyAudience?: boolean;
}
export interface JwtKey {
    algorithm: 'HS256' | 'HS384' | 'HS512' | 'RS256' | 'RS384' | 'RS512' | 'ES256' | 'ES384' | 'EdDSA';
    key: string;
}
export interface ListOptions extends RequestOptions {
    fresh?: boolean;
}
export interface LogMessage {
    level: LogLevel;
    logger?: string;
    data: unknown;
}
export interface LogRecord {
    level: 'error';
    message: string;
    error: unknown;
}
export interface LoginCall {
    readonly signal: AbortSignal;
}
export interface MaskingOptions {
    texts?: 'results' | 'arguments' | 'both';
    secrets?: readonly string[];
    credentials?: boolean;
    maxBytes?: number;
}
export interface McpError extends Details {
}
export interface McpHttpHandler {
    fetch: (request: Request, options?: {
        authInfo?: unknown;
        parsedBody?: unknown;
    }) => Promise<Response>;
    node: (request: IncomingMessage & {
        auth?: unknown;
    }, response: ServerResponse, parsedBody?: unknown) => Promise<void>;
    serve: (address: string | URL, options?: ServeOptions) => Promise<Serving>;
    close: () => Promise<void>;
    notify: ServerNotifier;
}
export interface McpRequestContext {
    era: 'legacy' | 'modern';
}
export interface Message {
    jsonrpc: '2.0';
    id?: Id | undefined;
    method?: string;
    params?: any;
    result?: any;
    error?: {
        code: number;
        message: string;
        data?: unknown;
    };
}
export interface OAuthOptions {
    clientName?: string;
    grant?: 'code' | 'device' | 'clientCredentials' | 'workload' | 'enterprise';
    clientId?: string;
    clientSecret?: string;
    issuer?: string;
    signingKey?: {
        readonly pem: string;
        readonly algorithm: 'ES256' | 'ES384' | 'EdDSA' | 'RS256' | 'RS384' | 'RS512' | 'PS256' | 'PS384' | 'PS512';
        readonly keyId?: string;
    };
    clientMetadataUrl?: string;
    scopes?: readonly string[];
    dpop?: boolean;
    allowsPrivateAddresses?: boolean;
    identityProvider?: {
        readonly tokenEndpoint: string;
        readonly clientId: string;
        readonly clientSecret?: string;
    };
    store?: 'memory' | 'user' | {
        readonly folder: string;
    } | CredentialStore;
    timeout?: number;
    onAuthorize?(page: AuthorizationPage, call: LoginCall): Awaitable<string | URL | void>;
    redirectUri?: string | URL;
    onDeviceCode?(code: DeviceCode, call: LoginCall): unknown;
    assertion?(request: AssertionRequest, call: LoginCall): Awaitable<string>;
}
export interface PageRequest {
    mode: 'url';
    message: string;
    url: string;
    elicitationId?: string;
}
export interface PageResult {
    action: 'accept' | 'decline' | 'cancel';
}
export interface Patterns {
    allowed?: readonly string[];
    denied?: readonly string[];
}
export interface PinDrift {
    server: string;
    tool: string;
    pinned: string | null;
    found: string;
}
export interface PinsOptions {
    onDrift?: (drift: PinDrift) => unknown;
}
export interface Policy {
    permissions?: {
        tools?: Patterns;
        resources?: Patterns;
        maxResourceSize?: number;
        maxToolExecutionTime?: number;
        toolPatterns?: boolean;
    };
    rate?: {
        burst: number;
        perSecond: number;
    };
    quota?: {
        calls: number;
        period: number;
    };
    toolTimeout?: number;
    timeouts?: Readonly<Record<string, number>>;
    keys?: Readonly<Record<string, Granted>>;
    jwt?: Jwt;
    scopes?: Readonly<Record<string, readonly string[]>>;
    resourceScopes?: Readonly<Record<string, readonly string[]>>;
    promptScopes?: Readonly<Record<string, readonly string[]>>;
    impliedScopes?: Readonly<Record<string, readonly string[]>>;
    filterLists?: boolean;
    resource?: ResourceServer;
    consentProxy?: ConsentProxy;
    verifier?: Verifier;
    verifierTimeout?: number;
    secrets?: readonly string[];
    auditArguments?: boolean;
    audit?: (event: AuditEvent) => void;
    auditQueue?: AuditQueue;
}
export interface PoolCounts {
    idle: number;
    inUse: number;
    opening: number;
    waiting: number;
    opened: number;
    reused: number;
    failed: number;
    closedIdle: number;
    dropped: number;
    timedOut: number;
}
export interface PoolOptions {
    maxConnections?: number;
    maxTotal?: number;
    sharing?: number;
    waitTimeout?: number;
    maxWaiting?: number;
    idleTimeout?: number;
}
export interface Principal {
    name: string;
    scopes?: readonly string[];
    expiresAt?: number;
    boundKey?: string;
    boundCertificate?: string;
}
export interface Progress {
    progress: number;
    total?: number;
    message?: string;
}
export interface Prompt {
    name: string;
    title?: string;
    description?: string;
    arguments?: PromptArgument[];
    [more: string]: unknown;
}
export interface PromptArgument {
    name: string;
    title?: string;
    description?: string;
    required?: boolean;
}
export interface PromptDefinition<State = any> {
    title?: string;
    description?: string;
    arguments?: readonly (PromptArgument & {
        complete?: Completer<State>;
    })[];
    icons?: readonly Icon[];
    _meta?: Readonly<Record<string, unknown>>;
}
export interface PromptMessage {
    role: 'user' | 'assistant';
    content: ContentBlock;
}
export interface ReadOptions {
    maxDepth?: number;
    integers?: Integers;
}
export interface References {
    overBytes: number;
    ttl?: number;
}
export interface Replies {
    'tools/call': CallToolResult;
    'resources/read': ResourceContents[];
    'prompts/get': GetPromptResult;
    'completion/complete': Completions;
    'tools/list': Tool[];
    'resources/list': Resource[];
    'resources/templates/list': ResourceTemplate[];
    'prompts/list': Prompt[];
}
export interface RequestOptions {
    signal?: AbortSignal;
    timeout?: number;
    maxTimeout?: number;
    onProgress?: (progress: Progress) => void;
    meta?: Readonly<Record<string, unknown>>;
}
export interface Resource {
    uri: string;
    name: string;
    title?: string;
    description?: string;
    mimeType?: string;
    [more: string]: unknown;
}
export interface ResourceContents {
    uri: string;
    mimeType?: string;
    text?: string;
    blob?: string;
    [more: string]: unknown;
}
export interface ResourceDefinition {
    name?: string;
    title?: string;
    description?: string;
    mimeType?: string;
    size?: number;
    annotations?: Annotations;
    icons?: readonly Icon[];
    _meta?: Readonly<Record<string, unknown>>;
}
export interface ResourceServer {
    url: string;
    issuers: readonly (Issuer | string)[];
    scopes?: readonly string[];
    audience?: string | readonly string[];
    anyAudience?: boolean;
    leeway?: number;
    cachedFor?: number;
    keyRefresh?: number;
    keyCooldown?: number;
    proofs?: 'off' | 'accepted' | 'required';
    proofAge?: number;
    proofNonces?: {
        secret: string;
        period: number;
    };
    name?: string;
    documentation?: string;
    rootCertificates?: string | readonly string[];
    proxy?: string;
}
export interface ResourceTemplate {
    uriTemplate: string;
    name: string;
    title?: string;
    description?: string;
    mimeType?: string;
    [more: string]: unknown;
}
export interface ResourceTemplateDefinition<State = any> extends ResourceDefinition {
    complete?: Readonly<Record<string, Completer<State>>>;
}
export interface RetryOptions {
    trustAnnotations?: boolean;
}
export interface RetryPolicy {
    tries?: number;
    base?: number;
    longest?: number;
}
export interface Root {
    uri: string;
    name?: string;
    [more: string]: unknown;
}
export interface RunAtOptions extends ServeOptions {
    workers?: number;
    health?: string | URL;
    onListening?: (address: string) => void;
}
export interface RunOptions {
    grace?: number;
    signals?: boolean;
    trace?: Trace;
}
export interface RunReport {
    unanswered: number;
    reason: 'end of input' | 'signal' | 'parent died' | 'broken pipe' | 'stopped' | 'closed';
    signal?: number;
}
export interface SamplingMessage {
    role: 'user' | 'assistant';
    content: SamplingBlock | SamplingBlock[];
    [more: string]: unknown;
}
export interface SamplingOutput {
    content: string | SamplingBlock | SamplingBlock[];
    model: string;
    stopReason?: string;
    role?: SamplingResult['role'];
    [more: string]: unknown;
}
export interface SamplingRequest<Messages = SamplingMessage[]> {
    messages: Messages;
    maxTokens: number;
    systemPrompt?: string;
    temperature?: number;
    stopSequences?: string[];
    modelPreferences?: {
        hints?: {
            name?: string;
        }[];
        costPriority?: number;
        speedPriority?: number;
        intelligencePriority?: number;
    };
    tools?: Tool[];
    toolChoice?: {
        mode?: 'auto' | 'required' | 'none';
    };
    [more: string]: unknown;
}
export interface SamplingResult {
    role: 'user' | 'assistant';
    content: SamplingBlock | SamplingBlock[];
    model: string;
    stopReason?: string;
    [more: string]: unknown;
}
export interface SdkServer {
    connect(transport: any): Promise<unknown>;
}
export interface SdkTransport {
    onclose?: () => void;
    onerror?: (error: Error) => void;
    onmessage?: (message: any, extra?: any) => void;
    sessionId?: string | undefined;
    start(): Promise<void>;
    send(message: any, options?: any): Promise<void>;
    close(): Promise<void>;
}
export interface SendOptions {
    relatedRequestId?: Id | undefined;
}
export interface SendOptions {
    timeout?: number;
    maxTimeout?: number;
    progress?: boolean;
    meta?: Readonly<Record<string, unknown>>;
}
export interface ServeOptions extends EndpointOptions {
    tls?: {
        certificate: string;
        key: string;
        clients?: string;
    };
    websocket?: boolean;
    heartbeat?: number;
    anonymous?: boolean;
    threads?: number;
    maxConnections?: number;
    maxConnectionsPerPeer?: number;
    headerTimeout?: number;
    signal?: AbortSignal;
    signals?: boolean;
}
export interface ServerNotifier {
    toolsChanged(): void;
    promptsChanged(): void;
    resourcesChanged(): void;
    resourceUpdated(uri: string): void;
}
export interface ServerOptions<State = unknown> {
    instructions?: string;
    lifespan?: {
        start: () => State | Promise<State>;
        stop?: (state: State) => unknown;
    };
    listChanges?: boolean;
    subscriptions?: boolean;
    pageSize?: number;
    cacheLists?: number;
    cacheScope?: 'public' | 'private';
    extensions?: Readonly<Record<string, object>>;
    taskLimits?: TaskLimits;
    maxBytes?: number;
    references?: References;
    stateKey?: Uint8Array;
    profile?: Profile;
    policy?: Policy;
    approval?: Readonly<Record<string, Approve<State>>>;
    sanitise?: Readonly<Record<string, Clean<State>>>;
    experimental?: Readonly<Record<string, object>>;
    actions?: boolean;
    integers?: Integers;
    onInitialized?: (client: ClientInfo) => void;
    onRootsChanged?: (client: ClientInfo | undefined) => void;
    onClosed?: (reason: McpError, client: ClientInfo | undefined) => void;
    telemetry?: boolean;
    logger?: Logger;
    onError?: (error: unknown, what: string, call?: Call) => unknown;
}
export interface Skill {
    uri: string;
    frontmatter: {
        name: string;
        description: string;
        [more: string]: unknown;
    };
    resources: SkillFile[] | 'dynamic';
}
export interface SkillFile {
    uri: string;
    digest: string;
    size: number;
}
export interface SpawnOptions extends SpawnOptionsOf<Client> {
}
export interface SpawnOptionsOf<Client> extends ClientOptionsOf<Client> {
    cwd?: string;
    env?: Record<string, string>;
    stderr?: 'inherit' | 'ignore' | ((line: string) => void);
    closeTimeout?: number;
}
export interface StandardSchema<Output = unknown> {
    readonly '~standard': {
        readonly version: 1;
        readonly vendor: string;
        readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
        readonly types?: {
            readonly input: unknown;
            readonly output: Output;
        } | undefined;
    };
}
export interface StartOptions extends RequestOptions {
    ttl?: number;
}
export interface StdioServerParameters {
    command: string;
    args?: string[];
    env?: Record<string, string>;
    stderr?: 'inherit' | 'ignore' | 'pipe' | 'overlapped';
    cwd?: string;
}
export interface StreamableHTTPClientTransportOptions {
    requestInit?: {
        headers?: HeadersInit;
    };
    sessionId?: string;
    authProvider?: undefined;
    fetch?: undefined;
    reconnectionOptions?: undefined;
    reconnectionScheduler?: undefined;
}
export interface StreamableHTTPServerTransportOptions {
    sessionIdGenerator?: (() => string) | undefined;
    onsessioninitialized?: (sessionId: string) => void | Promise<void>;
    onsessionclosed?: (sessionId: string) => void | Promise<void>;
    enableDnsRebindingProtection?: boolean;
    allowedHosts?: string[];
    allowedOrigins?: string[];
    keepAliveMs?: number;
    maxRequestBodySize?: number;
    retryInterval?: number;
    enableJsonResponse?: boolean;
    eventStore?: undefined;
}
export interface TaskInfo {
    taskId: string;
    status: TaskStatus;
    statusMessage?: string;
    createdAt: string;
    lastUpdatedAt: string;
    ttl: number | null;
    pollInterval?: number;
}
export interface TaskLimits {
    tasks?: number;
    perOwner?: number;
    bytes?: number;
    ttl?: number;
    pollInterval?: number;
}
export interface TestOptions extends ClientOptions {
    test?: TestContext;
}
export interface Tool {
    name: string;
    title?: string;
    description?: string;
    inputSchema: JsonSchema;
    outputSchema?: JsonSchema;
    annotations?: ToolAnnotations;
    icons?: Icon[];
    execution?: {
        taskSupport?: TaskSupport;
    };
    [more: string]: unknown;
}
export interface ToolAnnotations {
    title?: string;
    readOnlyHint?: boolean;
    destructiveHint?: boolean;
    idempotentHint?: boolean;
    openWorldHint?: boolean;
}
export interface ToolDefinition {
    title?: string;
    description?: string;
    inputSchema?: Schema;
    outputSchema?: Schema;
    annotations?: ToolAnnotations;
    taskSupport?: TaskSupport;
    action?: ActionNotes;
    onGet?: boolean;
    atomic?: boolean;
    kept?: Results;
    icons?: readonly Icon[];
    _meta?: Readonly<Record<string, unknown>>;
}
export interface Upstream {
    authorizationEndpoint: string;
    tokenEndpoint: string;
    clientId: string;
    clientSecret?: string;
    revocationEndpoint?: string;
    issuer?: string;
    scopes?: readonly string[];
    parameters?: Readonly<Record<string, string>>;
}
export interface UpstreamCall {
    server: string;
    method: string;
    name: string | null;
    principal: string | null;
    outcome: 'done' | 'tool_failed' | 'failed' | 'timed_out' | 'cancelled';
    error: string | null;
    seconds: number;
    dropped: number;
}
export type Approve<State = any> = (tool: string, args: any, context: Context<State>) => boolean | Promise<boolean>;
export type Auth = {
    type: 'bearer';
    token: string;
} | {
    type: 'basic';
    user: string;
    password: string;
} | {
    type: 'apiKey';
    key: string;
    header?: string;
};
export type Call<State = any> = {
    [Method in keyof Replies]: CallOf<Method, State>;
}[keyof Replies];
export type CarrierFault = 'unreachable' | 'tls' | 'timed_out' | 'refused' | 'redirected' | 'no_answer' | 'too_long' | 'broken' | 'session_lost';
export type ChainDirection = 'to_server' | 'to_client';
export type Change = {
    type: 'toolsChanged';
} | {
    type: 'promptsChanged';
} | {
    type: 'resourcesChanged';
} | {
    type: 'resourceUpdated';
    uri: string;
};
export type Clean<State = any> = (tool: string, args: any, context: Context<State>) => object | Promise<object>;
export type Completer<State = any> = (value: string, args: Record<string, string>, context: Context<State>) => readonly string[] | Completions | Promise<readonly string[] | Completions>;
export type CompletionTarget = {
    prompt: string;
} | {
    template: string;
};
export type ContentBlock = {
    type: 'text';
    text: string;
    [more: string]: unknown;
} | {
    type: 'image';
    data: string;
    mimeType: string;
    [more: string]: unknown;
} | {
    type: 'audio';
    data: string;
    mimeType: string;
    [more: string]: unknown;
} | {
    type: 'resource';
    resource: ResourceContents;
    [more: string]: unknown;
} | {
    type: 'resource_link';
    uri: string;
    name: string;
    mimeType?: string;
    [more: string]: unknown;
};
export type Credentials = {
    readonly kind: 'none';
} | {
    readonly kind: 'bearer' | 'apiKey';
    readonly secret: string;
} | {
    readonly kind: 'basic';
    readonly user: string;
    readonly secret: string;
} | {
    readonly kind: 'certificate';
    readonly certificate: Uint8Array;
};
export type Described<S, Unknown = Record<string, any>> = S extends {
    readonly '~standard': {
        readonly types?: {
            readonly output: infer Output;
        } | undefined;
    };
} ? Output : S extends {
    readonly _output: infer Output;
} ? Output : S extends {
    readonly static: infer Output;
} ? Output : S extends Shape ? DescribedBy<S> : Unknown;
export type ErrorCode = 'ERR_MCP_PEER' | 'ERR_MCP_CANCELLED' | 'ERR_MCP_TIMEOUT' | 'ERR_MCP_CLOSED' | 'ERR_MCP_CLOSED_LOCALLY' | 'ERR_MCP_CLOSED_BY_PEER' | 'ERR_MCP_PEER_EXITED' | 'ERR_MCP_STALLED' | 'ERR_MCP_UNRESPONSIVE' | 'ERR_MCP_IDLE' | 'ERR_MCP_SHUTTING_DOWN' | 'ERR_MCP_NO_COMMON_REVISION' | 'ERR_MCP_HANDSHAKE' | 'ERR_MCP_IO' | 'ERR_MCP_CARRIER' | 'ERR_MCP_LOGIN' | 'ERR_MCP_SPAWN' | 'ERR_MCP_OVERLOADED' | 'ERR_MCP_BAD_ANSWER' | 'ERR_MCP_UNSUPPORTED' | 'ERR_MCP_MISUSE' | 'ERR_MCP_ACTION' | 'ERR_MCP_INVALID_PARAMS' | 'ERR_MCP_BREAKER_OPEN' | 'ERR_MCP_ROUND_OVER' | 'ERR_MCP_SCHEMA' | 'ERR_MCP_TEMPLATE' | 'ERR_MCP_DUPLICATE' | 'ERR_MCP_INTERNAL';
export type Event = {
    type: 'opened';
    revision: Revision;
} | Request | {
    type: 'cancelled';
    request: Request;
    reason: string | undefined;
} | {
    type: 'notification';
    message: Message;
} | {
    type: 'progress';
    number: number;
    progress: Progress;
} | {
    type: 'answered';
    number: number;
    message: Message;
    error?: undefined;
} | {
    type: 'answered';
    number: number;
    error: McpError;
    message?: undefined;
} | {
    type: 'stray';
    what: Stray;
    frame: Buffer;
} | {
    type: 'closed';
    reason: McpError;
};
export type FailureKind = 'invalid request' | 'method not found' | 'invalid params' | 'tool not found' | 'prompt not found' | 'not found' | 'missing capability' | 'rejected' | 'internal' | number;
export type FormResult<Content = Record<string, unknown>> = {
    action: 'accept';
    content: Content;
} | {
    action: 'decline' | 'cancel';
    content?: undefined;
};
export type Framing = 'line' | 'length' | 'detect';
export type Handler = (request: Request, response: Response) => void;
export type Id = string | number | bigint;
export type Id = string | number;
export type Integers = 'number' | 'bigint' | 'text';
export type JsonSchema = {
    readonly [keyword: string]: unknown;
};
export type LogLevel = (typeof LEVELS)[number];
export type Logger = {
    error(...args: any[]): unknown;
} | ((record: LogRecord) => unknown);
export type LoginStep = 'options' | 'resource' | 'discovery' | 'registration' | 'authorization' | 'token' | 'refresh' | 'step_up' | 'revocation' | 'store';
export type McpServerFactory = (context: McpRequestContext) => SdkServer | Promise<SdkServer>;
export type MessageKind = 'request' | 'notification' | 'response' | 'error' | 'batch' | 'invalid';
export type Middleware<State = any> = (call: Call<State>, next: Next) => unknown;
export type Next = <Method extends keyof Replies>(call?: CallOf<Method>) => Promise<Replies[Method]>;
export type Noted = {
    [Name in keyof ClientEvents]: [
        name: Name,
        ...ClientEvents[Name]
    ];
}[Exclude<keyof ClientEvents, 'log' | 'closed'>];
export type PoolClientOptions = ConnectOptions & SpawnOptions;
export type PoolTarget = string | URL | readonly string[];
export type Profile = 'official' | 'reference' | 'chain' | 'extended' | 'patterns';
export type PromptOutput = string | readonly PromptMessage[] | GetPromptResult;
export type ResourceOutput = string | Uint8Array | ResourceContents | readonly ResourceContents[];
export type Revision = '2024-11-05' | '2025-03-26' | '2025-06-18' | '2025-11-25' | '2026-07-28';
export type Rule = Pins | Approval | Masking | Breaker | Retry | CallReports;
export type SamplingBlock = {
    type: 'text';
    text: string;
    [more: string]: unknown;
} | {
    type: 'image';
    data: string;
    mimeType: string;
    [more: string]: unknown;
} | {
    type: 'audio';
    data: string;
    mimeType: string;
    [more: string]: unknown;
} | {
    type: 'tool_use';
    id: string;
    name: string;
    input: Record<string, unknown>;
    [more: string]: unknown;
} | {
    type: 'tool_result';
    toolUseId: string;
    content: ContentBlock[];
    [more: string]: unknown;
};
export type Schema = JsonSchema | {
    readonly type: 'object';
} | StandardSchema | OldZodSchema | Shape;
export type Shape = {
    readonly [name: string]: MemberSchema;
};
export type Stray = 'answer' | 'bad frame' | 'oversize' | 'cancel' | 'unexpected';
export type TaskStatus = (typeof STATUSES)[number];
export type TaskSupport = 'forbidden' | 'optional' | 'required';
export type TestContext = {
    after(close: () => Promise<void>): void;
} | {
    onTestFinished(close: () => Promise<void>): void;
};
export type Tester = Client & {
    readonly logs: LogMessage[];
    readonly progress: Progress[];
    readonly notifications: Noted[];
};
export type ToolOutput = string | number | boolean | bigint | null | undefined | void | Uint8Array | Block | readonly Block[] | CallToolResult | Json | object;
export type Trace = (direction: 'in' | 'out', message: string) => void;
export type Verifier = (credentials: Credentials, call: {
    readonly signal: AbortSignal;
}) => Verdict | Promise<Verdict>;
interface Details {
    readonly rpcCode?: number;
    readonly fault?: CarrierFault;
    readonly status?: number;
    readonly authenticate?: string;
    readonly loginStep?: LoginStep;
    readonly oauthError?: string;
    readonly data?: unknown;
    readonly forPeople?: string;
    readonly isTransient?: boolean;
    readonly retryAfterMs?: number;
}
interface OldZodSchema<Output = unknown> {
    readonly _output: Output;
    readonly _def: unknown;
    readonly safeParse: (value: unknown) => {
        readonly success: true;
        readonly data: unknown;
    } | {
        readonly success: false;
        readonly error: {
            readonly issues: Issues;
        };
    };
}
interface SendOptions {
    resumptionToken?: string | undefined;
    onresumptiontoken?: ((token: string) => void) | undefined;
    headers?: Readonly<Record<string, string>> | undefined;
    requestSignal?: AbortSignal | undefined;
    onRequestStreamEnd?: (() => void) | undefined;
}
type Awaitable<T> = T | Promise<T>;
type Awaitable<T> = T | Promise<T>;
type Awaitable<T> = T | Promise<T>;
type DescribedBy<S extends Shape> = Simple<{
    [K in keyof S as undefined extends Described<S[K]> ? never : K]: Described<S[K]>;
} & {
    [K in keyof S as undefined extends Described<S[K]> ? K : never]?: Described<S[K]>;
}>;
type HeadersInit = ConstructorParameters<typeof Headers>[0];
type Issues = readonly {
    readonly message: string;
    readonly path?: readonly unknown[] | undefined;
}[];
type MemberSchema = StandardSchema | OldZodSchema;
type Options = Pick<RequestOptions, 'signal'>;
type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;
type Simple<T> = {
    [K in keyof T]: T[K];
};
type StandardResult<Output> = {
    readonly value: Output;
    readonly issues?: undefined;
} | {
    readonly issues: Issues;
};
type Verdict = Principal | string | null | undefined;
