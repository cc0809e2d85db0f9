/**
 * The names of the SDKs, of zod and of Node that are not public and that this package needs nevertheless. Nothing else in
 * this package uses such a name. `test/private.test.mjs` has a test for each, which runs under every accelerated release
 * of `gate.ts`.
 */
import { promises } from 'node:fs';
import Module from 'node:module';
import type { SdkMcpServer, SdkPrompt, SdkProtocol, SdkResource, SdkServer, SdkTool } from './shapes';

/** @internal The registries of an `McpServer`, by the methods whose handlers read them first. */
export const REGISTRIES = {
    'tools/list': '_registeredTools',
    'tools/call': '_registeredTools',
    'resources/list': '_registeredResources',
    'resources/templates/list': '_registeredResourceTemplates',
    'resources/read': '_registeredResources',
    'prompts/list': '_registeredPrompts',
    'prompts/get': '_registeredPrompts'
} as const;

interface McpServerInside {
    _registeredTools: Record<string, SdkTool>;
    _registeredResources: Record<string, SdkResource>;
    _registeredResourceTemplates: Record<string, SdkResource>;
    _registeredPrompts: Record<string, SdkPrompt>;
    _maxToolInputElements?: number;
    validateToolInput(tool: SdkTool, args: unknown, name: string): Promise<unknown>;
    validateToolOutput(tool: SdkTool, result: unknown, name: string): Promise<void>;
}

interface ProtocolInside {
    _serverInfo?: { name?: string; version?: string };
    _instructions?: string;
    _capabilities?: object;
    _requestHandlers?: Map<string, unknown>;
    _options?: { supportedProtocolVersions?: string[] };
    /** v1. */
    _taskStore?: object;
    requestTaskStore?(request: object, sessionId: string | undefined): object;
    /** v2. */
    buildContext?(context: object, extra?: object): object;
}

const insideOf = (server: SdkMcpServer) => server as unknown as McpServerInside;
const within = (protocol: SdkProtocol) => protocol as unknown as ProtocolInside;

// `McpServer`.

/** @internal Whether a server has the registries of an `McpServer`. */
export function hasRegistries(server: SdkServer): boolean {
    const found = server as unknown as Record<string, unknown>;
    return Object.values(REGISTRIES).every(name => typeof found[name] === 'object');
}

/** @internal The tools by name. */
export function toolsOf(server: SdkMcpServer): Record<string, SdkTool> {
    return insideOf(server)._registeredTools;
}

/** @internal The resources by URI. */
export function resourcesOf(server: SdkMcpServer): Record<string, SdkResource> {
    return insideOf(server)._registeredResources;
}

/** @internal The resource templates by name. */
export function templatesOf(server: SdkMcpServer): Record<string, SdkResource> {
    return insideOf(server)._registeredResourceTemplates;
}

/** @internal The prompts by name. */
export function promptsOf(server: SdkMcpServer): Record<string, SdkPrompt> {
    return insideOf(server)._registeredPrompts;
}

/** @internal Whether the number of elements in arguments is bounded. */
export function boundsArguments(server: SdkMcpServer): boolean {
    return insideOf(server)._maxToolInputElements !== undefined;
}

/** @internal Validates arguments with the schema of a tool; rejects with the SDK's own error. */
export function validateInput(server: SdkMcpServer, tool: SdkTool, args: unknown, name: string): Promise<unknown> {
    return insideOf(server).validateToolInput(tool, args, name);
}

/** @internal Validates a result with the output schema of a tool; rejects with the SDK's own error. */
export function validateOutput(server: SdkMcpServer, tool: SdkTool, result: unknown, name: string): Promise<void> {
    return insideOf(server).validateToolOutput(tool, result, name);
}

// `Server`, the protocol object.

/** @internal The name, version and description of a server. */
export function infoOf(protocol: SdkProtocol): { name?: string; version?: string } {
    return within(protocol)._serverInfo ?? {};
}

/** @internal */
export function instructionsOf(protocol: SdkProtocol): string | undefined {
    return within(protocol)._instructions;
}

/** @internal The capabilities of a server; public in v2. */
export function capabilitiesOf(protocol: SdkProtocol): object {
    return protocol.getCapabilities?.() ?? within(protocol)._capabilities ?? {};
}

/** @internal Whether a server chooses the revisions that it supports, which only v2 lets it do. */
export function limitsVersions(protocol: SdkProtocol): boolean {
    return within(protocol)._options?.supportedProtocolVersions !== undefined;
}

/** @internal The property of a server that has its handlers. */
export const HANDLERS = '_requestHandlers';

/** @internal The handler of a method. */
export function handlerOf(protocol: SdkProtocol, method: string): unknown {
    return within(protocol)._requestHandlers?.get(method);
}

/** @internal The methods that have a handler. */
export function methodsOf(protocol: SdkProtocol): string[] {
    return [...(within(protocol)._requestHandlers?.keys() ?? [])];
}

/** @internal The store of tasks as the handler of a request sees it; `undefined` without one, as in v2. */
export function taskStoreFor(protocol: SdkProtocol, request: object, sessionId: string | undefined): object | undefined {
    const { _taskStore } = within(protocol);
    return _taskStore === undefined ? undefined : within(protocol).requestTaskStore!(request, sessionId);
}

/** @internal The generation of the SDK: the contexts of handlers differ. */
export function generationOf(protocol: SdkProtocol | undefined): 1 | 2 {
    return protocol !== undefined && typeof within(protocol).buildContext === 'function' ? 2 : 1;
}

/** @internal Completes the context of a handler of v2. */
export function contextOf(protocol: SdkProtocol, base: object, extra: object | undefined): { mcpReq: object } {
    return within(protocol).buildContext!(base, extra) as { mcpReq: object };
}

/** @internal Fixes the revision of a server of v2, and has it read its client from `said`, by name. */
export function bindClient(protocol: SdkProtocol, revision: string, said: (name: string) => unknown): void {
    const read = (name: string) => ({ get: () => said(name), set: () => {}, configurable: true, enumerable: true });
    Object.defineProperties(protocol, {
        _negotiatedProtocolVersion: { value: revision, writable: true, configurable: true, enumerable: true },
        _clientCapabilities: read('clientCapabilities'),
        _clientVersion: read('clientInfo')
    });
}

// `StdioServerTransport`.

/** @internal The streams of a transport on stdin and stdout. */
export function streamsOf(transport: object): [stdin: unknown, stdout: unknown] {
    const { _stdin, _stdout } = transport as { _stdin?: unknown; _stdout?: unknown };
    return [_stdin, _stdout];
}

/** The SDKs' bound of what they have read of a message, in bytes. */
const BUFFER_BYTES = 10 * 1024 * 1024;

/** @internal Whether a transport on stdin and stdout has a bound of its own for what it has read of a message. */
export function boundsBuffer(transport: object): boolean {
    const { _readBuffer } = transport as { _readBuffer?: { _maxBufferSize?: number } };
    return (_readBuffer?._maxBufferSize ?? BUFFER_BYTES) !== BUFFER_BYTES;
}

// The transports over Streamable HTTP.

/** @internal */
export interface HttpInside {
    /** The transport for web-standard requests, which those for `node:http` contain from 1.25 on. */
    _webStandardTransport?: HttpInside;
    sessionId?: string | undefined;
    sessionIdGenerator?: () => string;
    _enableJsonResponse?: boolean;
    _eventStore?: object;
    _onsessioninitialized?: (id: string) => void | Promise<void>;
    _onsessionclosed?: (id: string) => void | Promise<void>;
    _enableDnsRebindingProtection?: boolean;
    _retryInterval?: number;
    _keepAliveMs?: number;
    _maxRequestBodySize?: number;
    _scopeChallengeResolver?: unknown;
}

/** @internal The transport for web-standard requests within one for `node:http`, or that transport itself. */
export const webOf = (transport: object): HttpInside => (transport as HttpInside)._webStandardTransport ?? (transport as HttpInside);

/** @internal The options of a transport over HTTP, and what it does that no option says. */
export function httpOptionsOf(transport: object): {
    sessionIdGenerator: (() => string) | undefined;
    isJson: boolean;
    eventStore: object | undefined;
    onsessioninitialized: ((id: string) => void | Promise<void>) | undefined;
    onsessionclosed: ((id: string) => void | Promise<void>) | undefined;
    checksHosts: boolean;
    retryInterval: number | undefined;
    keepAliveMs: number | undefined;
    maxRequestBodySize: number | undefined;
    challenges: boolean;
} {
    const web = webOf(transport);
    return {
        sessionIdGenerator: web.sessionIdGenerator,
        isJson: web._enableJsonResponse === true,
        eventStore: web._eventStore,
        onsessioninitialized: web._onsessioninitialized,
        onsessionclosed: web._onsessionclosed,
        checksHosts: web._enableDnsRebindingProtection === true,
        retryInterval: web._retryInterval,
        keepAliveMs: web._keepAliveMs,
        maxRequestBodySize: web._maxRequestBodySize,
        challenges: web._scopeChallengeResolver !== undefined
    };
}

/** @internal Sets the session id that a transport shows. */
export function setSessionId(transport: object, id: string): void {
    webOf(transport).sessionId = id;
}

// Zod 4.

/** @internal The definition of a schema of zod 4; `undefined` for anything else. */
export function definitionOf(schema: any): { type: string; checks?: readonly unknown[]; [part: string]: any } | undefined {
    return schema?._zod?.def;
}

/** @internal The kind of a check within a definition. */
export function checkOf(check: any): string | undefined {
    return check?._zod?.def?.check;
}

/** @internal Validates without creating an error for a misfit; `undefined` if the schema cannot. */
export function parserOf(schema: any): ((value: unknown) => { value: unknown; issues: unknown[] }) | undefined {
    const { run } = schema._zod;
    return typeof run === 'function' ? value => schema._zod.run({ value, issues: [] }, { async: false }) : undefined;
}

// Node.

interface ReadableInside {
    _read?(size: number): void;
    _readableState: { reading: boolean };
}

/**
 * @internal Has a stream read nothing from its descriptor, which the engine reads, until the returned function is
 * called.
 */
export function stopReading(stream: NodeJS.ReadableStream): () => void {
    const inside = stream as unknown as ReadableInside & { readableFlowing: boolean | null };
    const before = Object.getOwnPropertyDescriptor(inside, '_read');
    let isAsked = false;
    inside._read = () => void (isAsked = true);
    return () => {
        delete inside._read;
        if (before) Object.defineProperty(inside, '_read', before);
        if (!isAsked) return;
        inside._readableState.reading = false;
        if (inside.readableFlowing) stream.read(0 as number);
    };
}

type Compile = (this: { exports: unknown }, content: string, filename: string, ...more: unknown[]) => unknown;

/** @internal Calls `seen` with the exports of every CommonJS module once it has run, whichever loader compiles it. */
export function watchModules(seen: (filename: string, exports: unknown) => void): void {
    const prototype = Module.prototype as unknown as { _compile: Compile };
    const { _compile } = prototype;
    prototype._compile = function (content, filename, ...more) {
        const result = _compile.call(this, content, filename, ...more);
        seen(filename, this.exports);
        return result;
    };
}

/**
 * @internal Adds what `endOf` gives to the source of each ES module. Where Node has no `module.registerHooks`, its loader
 * reads modules by `fs.promises.readFile`, with a URL alone. Ends when the returned function is called.
 */
export function watchReading(endOf: (url: string) => string | undefined): () => void {
    let isWatching = true;
    const read = promises.readFile as (...args: unknown[]) => Promise<Buffer>;
    const readFile = (...args: unknown[]) => {
        const source = read.apply(promises, args);
        const end = isWatching && args.length === 1 && args[0] instanceof URL ? endOf(args[0].href) : undefined;
        return end === undefined ? source : source.then(text => Buffer.concat([text, Buffer.from(end)]));
    };
    promises.readFile = readFile as typeof promises.readFile;
    return () => {
        isWatching = false;
        // Else another patch stands above, which calls this one.
        if (promises.readFile === readFile) promises.readFile = read as typeof promises.readFile;
    };
}
