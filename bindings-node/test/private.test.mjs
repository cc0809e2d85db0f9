// Each name that is not public and that `face/sdk/private.ts` reads exists in these releases, and no other file reads one.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import Module, { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import { place } from './place.mjs';
import { make } from './theirs.mjs';

const require = createRequire(import.meta.url);
const inside = require('../dist/sdk/private.js');
const { known, packageOf } = require('../dist/sdk/gate.js');

/** The generations whose installed release is accelerated. */
const GENERATIONS = [1, 2].filter(generation => {
    const file = require.resolve(generation === 1 ? '@modelcontextprotocol/sdk/server/mcp.js' : '@modelcontextprotocol/server');
    return known(packageOf(file)) === 'accelerated';
});
assert.ok(GENERATIONS.length > 0);

const httpTransport = async generation =>
    generation === 1
        ? (await import('@modelcontextprotocol/sdk/server/streamableHttp.js')).StreamableHTTPServerTransport
        : (await import('@modelcontextprotocol/server')).WebStandardStreamableHTTPServerTransport;

/** For each function: what it gives for a server. */
const OF_SERVERS = {
    hasRegistries: ({ server }) => assert.ok(inside.hasRegistries(server) && !inside.hasRegistries({ connect() {} })),
    toolsOf: ({ server }) => assert.equal(typeof inside.toolsOf(server).echo, 'object'),
    resourcesOf: ({ server }) => assert.equal(typeof inside.resourcesOf(server)['memo://a'].readCallback, 'function'),
    templatesOf: ({ server }) => assert.ok(inside.templatesOf(server).user.resourceTemplate.uriTemplate.match('user://1/a')),
    promptsOf: ({ server }) => assert.equal(inside.promptsOf(server).plain.enabled, true),
    boundsArguments: ({ server }) => assert.equal(inside.boundsArguments(server), false),
    validateInput: async ({ server, echo }) => {
        assert.deepEqual(await inside.validateInput(server, echo, { text: 'a' }, 'echo'), { text: 'a' });
        await assert.rejects(inside.validateInput(server, echo, {}, 'echo'), /[Ii]nvalid/);
    },
    validateOutput: async ({ server }) => {
        const { structured } = inside.toolsOf(server);
        await inside.validateOutput(server, structured, { content: [], structuredContent: { n: 1 } }, 'structured');
        await assert.rejects(inside.validateOutput(server, structured, { content: [] }, 'structured'));
    },
    infoOf: ({ protocol }) => assert.equal(inside.infoOf(protocol).name, 'theirs'),
    instructionsOf: ({ protocol }) => assert.equal(inside.instructionsOf(protocol), 'Try everything.'),
    capabilitiesOf: ({ protocol }) => assert.deepEqual(inside.capabilitiesOf(protocol).logging, {}),
    handlerOf: ({ protocol }) => assert.deepEqual(['tools/call', 'com.example/none'].map(name => typeof inside.handlerOf(protocol, name)), ['function', 'undefined']),
    limitsVersions: async ({ protocol, generation }) => {
        assert.equal(inside.limitsVersions(protocol), false);
        const { McpServer } = await import(generation === 1 ? '@modelcontextprotocol/sdk/server/mcp.js' : '@modelcontextprotocol/server');
        const { server } = new McpServer({ name: 'a', version: '1' }, { supportedProtocolVersions: ['2025-06-18'] });
        assert.equal(inside.limitsVersions(server), true);
    },
    boundsBuffer: async ({ generation }) => {
        const { StdioServerTransport } = await import(generation === 1 ? '@modelcontextprotocol/sdk/server/stdio.js' : '@modelcontextprotocol/server/stdio');
        const made = maxBufferSize => new StdioServerTransport(new PassThrough(), new PassThrough(), { maxBufferSize });
        assert.equal(inside.boundsBuffer(made(undefined)), false);
        // Releases before this option have no bound.
        if (made(undefined)._readBuffer._maxBufferSize !== undefined) assert.equal(inside.boundsBuffer(made(1000)), true);
    },
    methodsOf: ({ protocol }) => assert.ok(['ping', 'initialize', 'tools/list', 'com.example/add'].every(name => inside.methodsOf(protocol).includes(name))),
    generationOf: ({ protocol, generation }) => assert.equal(inside.generationOf(protocol), generation),
    taskStoreFor: async ({ protocol, generation }) => {
        assert.equal(inside.taskStoreFor(protocol, {}, undefined), undefined);
        if (generation === 2) return;
        const { InMemoryTaskStore } = await import('@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js');
        const { Server } = await import('@modelcontextprotocol/sdk/server/index.js');
        const tasked = new Server({ name: 'a', version: '1' }, { taskStore: new InMemoryTaskStore() });
        const store = inside.taskStoreFor(tasked, { jsonrpc: '2.0', id: 1, method: 'tools/call' }, undefined);
        const { taskId } = await store.createTask({ ttl: 1000 });
        assert.equal((await store.getTask(taskId)).status, 'working');
    },
    contextOf: ({ protocol, generation }) => {
        if (generation === 2) assert.equal(inside.contextOf(protocol, { mcpReq: { id: 7 } }, undefined).mcpReq.id, 7);
    },
    streamsOf: async ({ generation }) => {
        const { StdioServerTransport } = await import(generation === 1 ? '@modelcontextprotocol/sdk/server/stdio.js' : '@modelcontextprotocol/server/stdio');
        const [stdin, stdout] = [new PassThrough(), new PassThrough()];
        assert.deepEqual(inside.streamsOf(new StdioServerTransport(stdin, stdout)), [stdin, stdout]);
    },
    httpOptionsOf: async ({ generation }) => {
        const Transport = await httpTransport(generation);
        const callback = () => 'id';
        const given = { sessionIdGenerator: callback, onsessioninitialized: callback, onsessionclosed: callback, eventStore: {}, enableJsonResponse: true, enableDnsRebindingProtection: true, retryInterval: 7 };
        const transport = new Transport(given);
        const { keepAliveMs, maxRequestBodySize, ...found } = inside.httpOptionsOf(transport);
        assert.deepEqual(found, { sessionIdGenerator: callback, onsessioninitialized: callback, onsessionclosed: callback, eventStore: {}, isJson: true, checksHosts: true, retryInterval: 7, challenges: false });
        for (const one of [keepAliveMs, maxRequestBodySize]) assert.ok(['number', 'undefined'].includes(typeof one));
        transport.setScopeChallengeResolver?.(() => undefined);
        assert.equal(inside.httpOptionsOf(transport).challenges, 'setScopeChallengeResolver' in transport);
        const { sessionIdGenerator, isJson, eventStore, checksHosts } = inside.httpOptionsOf(new Transport({ sessionIdGenerator: undefined }));
        assert.deepEqual([sessionIdGenerator, isJson, eventStore, checksHosts], [undefined, false, undefined, false]);
    },
    webOf: async ({ generation }) => {
        const web = new (await httpTransport(generation))({ sessionIdGenerator: () => 'id' });
        assert.equal(typeof inside.webOf(web).handleRequest, 'function');
        assert.equal(inside.webOf(inside.webOf(web)), inside.webOf(web));
    },
    setSessionId: async ({ generation }) => {
        const transport = new (await httpTransport(generation))({ sessionIdGenerator: () => 'id' });
        inside.setSessionId(transport, 'seven');
        assert.equal(transport.sessionId, 'seven');
    },
    bindClient: async ({ generation }) => {
        if (generation === 1) return;
        const { server } = await make(generation);
        inside.bindClient(server, '2026-07-28', name => ({ clientCapabilities: { roots: {} }, clientInfo: { name: 'c', version: '1' } })[name]);
        assert.deepEqual([server.getClientCapabilities(), server.getClientVersion().name, server.getNegotiatedProtocolVersion()], [{ roots: {} }, 'c', '2026-07-28']);
    }
};

/** For each other function. */
const OTHERS = {
    definitionOf: () => assert.deepEqual([inside.definitionOf(z.object({})).type, inside.definitionOf({})], ['object', undefined]),
    checkOf: () => assert.equal(inside.checkOf(inside.definitionOf(z.string().refine(() => true)).checks[0]), 'custom'),
    parserOf: () => {
        const parse = inside.parserOf(z.object({ a: z.number() }));
        assert.deepEqual([parse({ a: 1 }).value, parse({ a: 1 }).issues.length, parse({}).issues.length], [{ a: 1 }, 0, 1]);
    },
    stopReading: () => {
        const code = `
            const { stdin } = process;
            require(${JSON.stringify(require.resolve('../dist/sdk/private.js'))}).stopReading(stdin);
            for (const event of ['data', 'end', 'close']) stdin.on(event, () => console.log(event));
            setTimeout(() => { console.log('nothing'); stdin.push(null); }, 200);`;
        const { stdout, stderr } = spawnSync(process.execPath, ['-e', code], { input: 'some', encoding: 'utf8' });
        assert.deepEqual(stdout.split('\n'), ['nothing', 'end', 'close', ''], stderr);
    },
    watchModules: () => {
        const seen = [];
        inside.watchModules((file, exports) => seen.push([file, exports]));
        const file = join(place('mcpbolt-private-'), 'module.cjs');
        writeFileSync(file, 'module.exports = 7;');
        require(file);
        assert.deepEqual(seen, [[file, 7]]);
    },
    watchReading: () => {
        const made = place('mcpbolt-private-');
        for (const name of ['seen', 'other']) writeFileSync(join(made, `${name}.mjs`), 'export const it = globalThis.added;');
        const code = `
            const { promises, readFileSync } = require('node:fs');
            const { pathToFileURL } = require('node:url');
            const [seen, other] = ['seen', 'other'].map(name => pathToFileURL(${JSON.stringify(made)} + '/' + name + '.mjs'));
            const stop = require(${JSON.stringify(require.resolve('../dist/sdk/private.js'))}).watchReading(url => (url === seen.href ? '\\nexport const added = 7;' : undefined));
            (async () => {
                // What programs read of a file is as it is, except by URL alone.
                const read = await Promise.all([promises.readFile(other), promises.readFile(seen, 'utf8'), promises.readFile(seen)]);
                const failed = await promises.readFile('/no/such/file').catch(({ code }) => code);
                const modules = require('node:module').registerHooks ? [] : [Object.keys(await import(seen)), Object.keys(await import(other))];
                stop();
                const after = await promises.readFile(seen);
                console.log(JSON.stringify([...[...read, after].map(text => String(text).includes('added = 7')), failed, ...modules]));
            })();`;
        const { stdout, stderr } = spawnSync(process.execPath, ['-e', code], { encoding: 'utf8' });
        const modules = Module.registerHooks ? [] : [['added', 'it'], ['it']];
        assert.deepEqual(JSON.parse(stdout || 'null'), [false, false, true, false, 'ENOENT', ...modules], stderr);
    }
};

for (const generation of GENERATIONS)
    for (const [name, check] of Object.entries(OF_SERVERS))
        test(`${name}, v${generation}`, async () => {
            const server = await make(generation);
            await check({ generation, server, protocol: server.server, echo: inside.toolsOf(server).echo });
        });
for (const [name, check] of Object.entries(OTHERS)) test(name, check);

test('every name has a test', () => {
    const names = Object.entries(inside).filter(([, value]) => typeof value === 'function');
    assert.deepEqual(names.map(([name]) => name).sort(), [...Object.keys(OF_SERVERS), ...Object.keys(OTHERS)].sort());
});

test('the handlers of these methods read these registries', async () => {
    for (const generation of GENERATIONS) {
        const server = await make(generation);
        const transport = { start: async () => {}, send: async () => {}, close: async () => {} };
        await server.connect(transport);
        const ask = async (method, params) => {
            transport.onmessage({ jsonrpc: '2.0', id: method, method, params });
            await new Promise(setImmediate);
        };
        await ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } });
        for (const [method, registry] of Object.entries(inside.REGISTRIES)) {
            const { value } = Object.getOwnPropertyDescriptor(server, registry);
            let isRead = false;
            Object.defineProperty(server, registry, { configurable: true, enumerable: true, get: () => ((isRead = true), value) });
            await ask(method, { name: 'none', uri: 'memo://none' });
            assert.ok(isRead, `${method} of v${generation}`);
        }
    }
});

test('no other file reads such a name', () => {
    const face = fileURLToPath(new URL('../face', import.meta.url));
    if (!existsSync(face)) return;
    const found = [];
    for (const file of readdirSync(face, { recursive: true })) {
        if (!/^(sdk|register)/.test(dirname(file)) || !file.endsWith('.ts') || file === join('sdk', 'private.ts')) continue;
        const text = readFileSync(join(face, file), 'utf8');
        // `_meta` is a member of messages.
        for (const [name] of text.matchAll(/(\._(?!_|meta\b)\w+|['"]_(?!_|meta\b)\w+['"])/g)) found.push(`${file}: ${name}`);
    }
    assert.deepEqual(found, []);
});
