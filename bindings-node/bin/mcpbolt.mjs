#!/usr/bin/env node
// The command mcpbolt. `run` serves the server that a module exports, `exec` runs a program unchanged; everything else is
// the engine's own command.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

const USAGE = `usage: mcpbolt run MODULE[:NAME] [ADDRESS] [--http [HOST]:PORT[/PATH]] [--anonymous] [--report]

  mcpbolt run server.mjs                       the server that this file exports, on stdin and stdout
  mcpbolt run server.mjs:weather --http :8000  the export of that name, at http://127.0.0.1:8000/mcp
  mcpbolt run server.mjs unix:/run/mcp.sock    at any address: http:, ws:, tcp:, unix:

A server is an instance of a server class of mcpbolt, the official SDK or fastmcp, or a function that returns one. Without
a name, the default export is served, or else the first export that is a server. The module must not connect or start
the server itself. --anonymous allows an address that other machines can reach, although clients are not authenticated.
--report writes to stderr, when the server has ended, what the engine did not serve itself, and why.`;

function fail(message, code = 1) {
    console.error(message);
    process.exit(code);
}

const require = createRequire(import.meta.url);
// A program that `exec` runs may need none of this.
const own = () => require('../dist/index.js').Server;

const isServer = value => value instanceof own() || typeof value?.connect === 'function';

/** The default export first, then those with a name. */
async function serverOf(module) {
    const { default: main, ...named } = module;
    const found = [main, ...Object.values(named)];
    const server = found.find(isServer);
    if (server) return server;
    const make = typeof main === 'function' ? main : found.find(value => typeof value === 'function' && value.length === 0);
    const made = await make?.();
    return isServer(made) ? made : undefined;
}

/** The export of that name, which may have dots, or what it makes. */
async function namedOf(module, name) {
    const value = name.split('.').reduce((within, part) => within?.[part], module);
    const made = typeof value === 'function' && !isServer(value) ? await value() : value;
    return isServer(made) ? made : undefined;
}

/** What a target names: a file, and perhaps an export of it. */
async function found(target) {
    const [, file, name] = (!existsSync(target) && /^(.+):([\p{L}_$][\p{L}\p{N}_$.]*)$/u.exec(target)) || [, target];
    const module = await import(pathToFileURL(resolve(file)));
    const server = name === undefined ? await serverOf(module) : await namedOf(module, name);
    if (server) return server;
    if (name === undefined) fail(`${file} exports no server, and no function that makes one`);
    fail(`${file} exports no server, and no function that makes one, by the name of ${name}`);
}

function addressOf(http, address = 'stdio:') {
    if (http === undefined) return address;
    const [, host, port, path] = /^(?:(.*):)?(\d+)(\/.*)?$/.exec(http) ?? fail(`no address: ${http}`, 2);
    return `http://${host || '127.0.0.1'}:${port}${path ?? '/mcp'}`;
}

async function main() {
    const options = { http: { type: 'string' }, anonymous: { type: 'boolean' }, report: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } };
    const [command, ...args] = process.argv.slice(2);
    if (command === 'exec') return require('../dist/register/exec.js').main(args);
    if (command !== 'run') {
        const { native } = require('../dist/native.js');
        process.exitCode = native.command(process.argv.slice(2));
        return;
    }
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
    const [target, address] = positionals;
    if (values.help) return console.log(USAGE);
    if (target === undefined) fail(USAGE, 2);
    const at = addressOf(values.http, address);
    const server = await found(target);
    const served = server instanceof own() ? server : require('../dist/sdk/index.js').accelerate(server);
    if (at !== 'stdio:') {
        const serving = await served.serve(at, { anonymous: values.anonymous ?? false });
        console.error(`mcpbolt: serving ${serving.address}`);
        await serving.ended;
    } else await served.run();
    if (values.report && served !== server) console.error(JSON.stringify(served.report(), null, 2));
}

await main().catch(error => fail(`mcpbolt: ${error.stack}`));
