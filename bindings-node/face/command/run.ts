/** `mcpbolt run`: serves the server that a module exports. */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { McpError } from '../errors';
import { accelerate, type Accelerated } from '../sdk/accelerate';
import type { SdkServer } from '../sdk/shapes';
import { Server } from '../server';
import { argumentsOf, SHARED, Wrong, type Arguments } from './arguments';

const USAGE = `usage: mcpbolt run MODULE[:NAME] [ADDRESS] [OPTION...]

Serve the server that a JavaScript module exports.

  mcpbolt run server.mjs                       the server that this file exports, on stdin and stdout
  mcpbolt run server.mjs:weather --http :8000  the export of that name, at http://127.0.0.1:8000/mcp
  mcpbolt run server.mjs unix:/run/mcp.sock    at any address: http:, ws:, tcp:, unix:
  mcpbolt run server.mjs --http :8000 --workers 4  with four processes, which share the address

A server is an instance of a server class of mcpbolt, the official SDK or fastmcp, or a function that returns one. Without
a name, the default export is served, or else the first export that is a server. The module must not connect or start
the server itself. TypeScript needs Node 22.18, or a loader of yours: NODE_OPTIONS="--import tsx" mcpbolt run server.ts

  --workers COUNT            serve with that many processes: SIGHUP replaces them one by one, SIGTERM ends them
${SHARED}
`;

/** @internal Serves until the server ends. */
export async function main(words: readonly string[]): Promise<void> {
    const given = argumentsOf(words, 'run');
    if (given === undefined) return void process.stdout.write(USAGE);
    const { address, anonymous, graceMs: grace, report, workers } = given;
    const server = await found(given);
    const served = isOwn(server) ? server : accelerate(server);
    if (workers !== undefined) await served.run(address, { anonymous, grace, workers, onListening }).catch(asWrong);
    else if (address === 'stdio:') await served.run({ grace });
    else await serve(served, address, { anonymous, grace });
    if (report && 'report' in served) console.error(JSON.stringify(served.report(), null, 2));
}

async function serve(served: Server | Accelerated, address: string, options: { anonymous: boolean; grace: number }): Promise<void> {
    // Nothing of the server's own runs before it listens, except the start of its lifespan.
    const serving = await served.serve(address, options).catch(asWrong);
    onListening(serving.address);
    await serving.ended;
}

function asWrong(error: unknown): never {
    throw error instanceof McpError ? new Wrong(error.message) : error;
}

const onListening = (address: string) => console.error(`mcpbolt: serving ${address}`);

/** The server may come from another copy of this package. */
const isOwn = (value: any): value is Server => value instanceof Server || typeof value?.serveStdio === 'function';
const isServer = (value: any): value is Server | SdkServer => isOwn(value) || typeof value?.connect === 'function';

/** The server that the arguments name. */
async function found({ file, name }: Arguments): Promise<Server | SdkServer> {
    // As node itself would name the program: what the program uses is found from there.
    const path = (process.argv[1] = resolve(file));
    const module = await import(pathToFileURL(path).href).catch(error => {
        if (error?.code !== 'ERR_UNKNOWN_FILE_EXTENSION') throw error;
        throw new Wrong(`Node ${process.versions.node} cannot run ${file}; TypeScript needs Node 22.18, or a loader: NODE_OPTIONS="--import tsx"`);
    });
    const server = name === undefined ? await only(module) : await named(module, name);
    if (server) return server;
    throw new Wrong(`${file} exports no server, and no function that makes one${name === undefined ? '' : `, by the name of ${name}`}`);
}

/** The default export first, then those with a name. */
async function only({ default: main, ...named }: Record<string, unknown>): Promise<Server | SdkServer | undefined> {
    const all = [main, ...Object.values(named)];
    const server = all.find(isServer);
    if (server) return server;
    const make = typeof main === 'function' ? main : all.find(value => typeof value === 'function' && value.length === 0);
    const made = await (make as Function | undefined)?.();
    return isServer(made) ? made : undefined;
}

/** The export of that name, which may have dots, or what it makes. */
async function named(module: object, name: string): Promise<Server | SdkServer | undefined> {
    const value: any = name.split('.').reduce((within: any, part) => within?.[part], module);
    const made = typeof value === 'function' && !isServer(value) ? await value() : value;
    return isServer(made) ? made : undefined;
}
