/**
 * Tests of servers, under node:test, vitest and others: a client in the process of the server, and results as plain
 * values.
 *
 * @packageDocumentation
 */
import { Client, type ClientOptions } from './client';
import { McpError } from './errors';
import type { ClientEvents } from './events';
import type { LogMessage, Progress } from './protocol';
import { Server } from './server';

/** The context that node:test (`t`) or vitest passes to a test, or anything else with one of these functions. */
export type TestContext = { after(close: () => Promise<void>): void } | { onTestFinished(close: () => Promise<void>): void };

export interface TestOptions extends ClientOptions {
    /** The test at whose end the client is closed. Without it, write `await using`, or close the client yourself. */
    test?: TestContext;
}

/** A notification of the server besides log messages: the name of the event of `ClientEvents`, and its arguments. */
export type Noted = { [Name in keyof ClientEvents]: [name: Name, ...ClientEvents[Name]] }[Exclude<keyof ClientEvents, 'log' | 'closed'>];

/** A client that keeps what the server sends besides answers. */
export type Tester = Client & {
    /** The log messages, of every level. */
    readonly logs: LogMessage[];
    /** The progress of all calls of tools. */
    readonly progress: Progress[];
    /** The other notifications: `['toolsChanged']`, `['resourceUpdated', uri]` and so on. */
    readonly notifications: Noted[];
};

const NOTED = ['toolsChanged', 'promptsChanged', 'resourcesChanged', 'resourceUpdated', 'elicitationComplete', 'notification'] as const;

/**
 * Connects to a server in this process, without a transport. The client is closed at the end of the test in
 * `options.test`, or by `await using`.
 */
export async function connect(server: Server<any>, { test, ...options }: TestOptions = {}): Promise<Tester> {
    if (!(server instanceof Server)) throw new McpError('ERR_MCP_MISUSE', 'connect takes a Server of mcpbolt; for a server of the official SDK, serve accelerate(server) and open a Client at its address');
    const closing = test && closerOf(test);
    const [logs, progress, notifications]: [LogMessage[], Progress[], Noted[]] = [[], [], []];
    const on: Record<string, (...args: any[]) => void> = { ...options.on };
    on.log = both(message => logs.push(message), on.log);
    for (const name of NOTED) on[name] = both((...args) => notifications.push([name, ...args] as Noted), on[name]);
    const client = await Client.connect(server, { ...options, on });
    closing?.(() => client[Symbol.asyncDispose]());
    // Servers that do not log refuse it.
    await client.setLogLevel('debug').catch(() => {});
    const callTool: Client['callTool'] = (name, args, request) => {
        const onProgress = both<[Progress]>(now => progress.push(now), request?.onProgress);
        return Client.prototype.callTool.call(client, name, args, { ...request, onProgress });
    };
    return Object.assign(client, { logs, progress, notifications, callTool });
}

function closerOf(test: TestContext): (close: () => Promise<void>) => void {
    if ('after' in test && typeof test.after === 'function') return close => test.after(close);
    if ('onTestFinished' in test && typeof test.onTestFinished === 'function') return close => test.onTestFinished(close);
    throw new McpError('ERR_MCP_MISUSE', 'the option test is the context of a test: it has after (node:test) or onTestFinished (vitest)');
}

function both<Args extends unknown[]>(first: (...args: Args) => unknown, second?: (...args: Args) => void): (...args: Args) => void {
    return (...args) => {
        first(...args);
        second?.(...args);
    };
}

/** The prefix of members of `_meta` that the protocol adds. */
const ADDED = 'io.modelcontextprotocol/';

/**
 * The value as plain JSON that is the same each time and in every revision: with sorted keys, without what the protocol
 * adds, with bytes in base64. It takes results, lists of tools and the like, notifications, and an `McpError`, of which
 * it keeps code, message and data.
 */
export function snapshot(value: unknown): any {
    if (value instanceof McpError) return plain({ code: value.rpcCode ?? value.code, message: value.message, data: value.data });
    if (Array.isArray(value)) return value.map(snapshot);
    if (!isObject(value)) return plain(value);
    const { resultType, ttlMs, cacheScope, _meta, ...members } = value;
    const own = Object.entries(_meta ?? {}).filter(([name]) => !name.startsWith(ADDED));
    return plain(own.length > 0 ? { ...members, _meta: Object.fromEntries(own) } : members);
}

function plain(value: unknown): unknown {
    if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
    if (Array.isArray(value)) return value.map(plain);
    // node:test writes snapshots with `JSON.stringify`, which takes no bigint.
    if (typeof value === 'bigint') return String(value);
    if (!isObject(value)) return value;
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, member]) => [name, plain(member)]));
}

function isObject(value: unknown): value is Record<string, unknown> {
    return typeof value === 'object' && value !== null && !(value instanceof Uint8Array);
}
