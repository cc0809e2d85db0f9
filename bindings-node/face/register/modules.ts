/**
 * The modules of the SDKs in which servers meet their transports. This file and `hooks.ts` also run on the thread of
 * Node's loader hooks, and load nothing.
 */

/** @internal The classes that are joined to the engine, by the names under which these modules have them. */
export const CLASSES = [
    'McpServer',
    'Server',
    'StdioServerTransport',
    'StreamableHTTPServerTransport',
    'NodeStreamableHTTPServerTransport',
    'WebStandardStreamableHTTPServerTransport'
] as const;

/** @internal The function of v2 that serves stdin and stdout, and how it is replaced where it is declared. */
export const ENTRY = 'serveStdio';

/** @internal What a module has: CommonJS exports a function, and has it replaced there. */
export type Joined = { readonly [Name in (typeof CLASSES)[number]]?: unknown } & { [ENTRY]?: unknown };

/** @internal Replaces a function in the module that declares it. */
export interface Replaced {
    value: unknown;
    replace(by: unknown): void;
}

/** @internal Called with what a module has, and its file or URL, on the thread of the program. */
export type Join = (found: Joined, file: string) => void;

/** @internal The name of the global symbol under which a program's `Join` is found. */
export const JOIN = 'mcpbolt.join';

const V1 = 'sdk/dist/(?:esm|cjs)/server/(?:index|mcp|stdio|streamableHttp|webStandardStreamableHttp)\\.js';
const V2 = '(?:server|node)/dist/(?:index|stdio)\\.[cm]js';
const FILES = new RegExp(`/@modelcontextprotocol/(?:${V1}|${V2})(?:[?#].*)?$`);

/** @internal Whether a file or URL is one of these modules. */
export function isJoined(file: string): boolean {
    return FILES.test(file.replaceAll('\\', '/'));
}
