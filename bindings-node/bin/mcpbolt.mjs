#!/usr/bin/env node
// mcpbolt run MODULE [ADDRESS] [--http [HOST]:PORT[/PATH]] [--report]: serves what a module exports.
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { Server } from '../index.mjs';
import { accelerate } from '../sdk.mjs';

const USAGE = `usage: mcpbolt run MODULE [ADDRESS] [--http [HOST]:PORT[/PATH]] [--report]

Serves the server that a module exports: one of mcpbolt's, of the official SDK or of fastmcp, or a function that makes
one; on stdin and stdout, or on an address (http:, ws:, tcp:, unix:). The module itself connects or starts nothing.
--report tells on stderr, when it has ended, what was not served natively, and why.`;

function fail(message, code = 1) {
    console.error(message);
    process.exit(code);
}

const isServer = value => value instanceof Server || typeof value?.connect === 'function';

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

function addressOf(http, address = 'stdio:') {
    if (http === undefined) return address;
    const [, host, port, path] = /^(?:(.*):)?(\d+)(\/.*)?$/.exec(http) ?? fail(`no address: ${http}`, 2);
    return `http://${host || '127.0.0.1'}:${port}${path ?? '/mcp'}`;
}

async function main() {
    const options = { http: { type: 'string' }, report: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } };
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    const [command, file, address] = positionals;
    if (values.help) return console.log(USAGE);
    if (command !== 'run' || file === undefined) fail(USAGE, 2);
    const at = addressOf(values.http, address);
    const server = await serverOf(await import(pathToFileURL(resolve(file))));
    if (server === undefined) fail(`${file} exports no server, and no function that makes one`);
    const served = server instanceof Server ? server : accelerate(server);
    if (at !== 'stdio:') {
        const serving = await served.serve(at);
        console.error(`mcpbolt: serving ${serving.address}`);
        await serving.ended;
    } else await served.run();
    if (values.report && served !== server) console.error(JSON.stringify(served.report(), null, 2));
}

await main().catch(error => fail(`mcpbolt: ${error.stack}`));
