// `mcpbolt/testing`, under node:test itself, in programs of their own under node:test and vitest, and by `await using`.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import ts from 'typescript';
import { McpError, Server, image } from 'mcpbolt';
import { connect, snapshot } from 'mcpbolt/testing';
import { failsWith, folder } from './wire.mjs';

const number = { type: 'number' };
const inputSchema = { type: 'object', properties: { a: number, b: number }, required: ['a', 'b'] };

const make = options =>
    new Server('tested', '1.0', { listChanges: true, ...options })
        .tool('add', { description: 'Adds.', inputSchema, _meta: { 'example.com/kind': 'sum' } }, ({ a, b }) => ({ sum: a + b }))
        .tool('work', {}, (_, ctx) => {
            ctx.progress(1, 2, 'half');
            ctx.log('debug', 'working');
        })
        .tool('draw', {}, () => image(new Uint8Array([137, 80, 78, 71]), 'image/png'))
        .tool('count', {}, () => ({ n: 2n ** 60n, none: null }))
        .resource('memo://one', { mimeType: 'text/plain' }, () => '1')
        .prompt('poem', { arguments: [{ name: 'about' }] }, ({ about }) => `of ${about}`);

for (const revision of ['2025-11-25', '2026-07-28'])
    test(`in ${revision}, results are snapshots that are the same in each revision`, async t => {
        const client = await connect(make(), { test: t, revision, integers: 'bigint' });
        assert.deepEqual(Object.entries(snapshot(await client.listTools())[0]), [
            ['_meta', { 'example.com/kind': 'sum' }],
            ['description', 'Adds.'],
            ['inputSchema', { properties: { a: number, b: number }, required: ['a', 'b'], type: 'object' }],
            ['name', 'add']
        ]);
        const said = { content: [{ text: '{"sum":3}', type: 'text' }], structuredContent: { sum: 3 } };
        assert.deepEqual(snapshot(await client.callTool('add', { a: 1, b: 2 })), said);
        assert.deepEqual(snapshot(await client.callTool('draw')), { content: [{ data: 'iVBORw==', mimeType: 'image/png', type: 'image' }] });
        const { structuredContent } = snapshot(await client.callTool('count'));
        assert.equal(JSON.stringify(structuredContent), '{"n":"1152921504606846976","none":null}');
        assert.deepEqual(snapshot(await client.readResource('memo://one')), [{ mimeType: 'text/plain', text: '1', uri: 'memo://one' }]);
        const messages = [{ content: { text: 'of x', type: 'text' }, role: 'user' }];
        assert.deepEqual(snapshot(await client.getPrompt('poem', { about: 'x' })), { messages });
        const error = await client.callTool('none').catch(error => error);
        assert.deepEqual(snapshot(error), { code: -32602, message: 'unknown tool "none"' });
    });

for (const revision of ['2024-11-05', '2025-11-25', '2026-07-28'])
    test(`in ${revision}, a client keeps what is sent besides answers`, async t => {
        const [mine, heard] = [[], []];
        const server = make();
        const client = await connect(server, { test: t, revision, on: { log: message => heard.push(message.data) } });
        await client.callTool('work', {}, { onProgress: now => mine.push(now.progress) });
        assert.deepEqual([client.progress.map(({ progress, total }) => [progress, total]), mine], [[[1, 2]], [1]]);
        assert.deepEqual([client.logs.map(({ level, data }) => [level, data]), heard], [[['debug', 'working']], ['working']]);
        if (revision === '2026-07-28') return;
        server.tool('new', {}, () => '');
        await client.callTool('new');
        assert.deepEqual(client.notifications, [['toolsChanged']]);
    });

test('a server that does not log, and clients of the same server side by side', async t => {
    const server = new Server('quiet', '1').tool('hello', {}, () => 'hi');
    const clients = await Promise.all([connect(server, { test: t }), connect(server, { test: t })]);
    for (const client of clients) assert.equal((await client.callTool('hello')).content[0].text, 'hi');
});

test('errors of an action, of a connection and of data that is no JSON are snapshots', () => {
    assert.deepEqual(snapshot(new McpError('ERR_MCP_CLOSED', 'gone')), { code: 'ERR_MCP_CLOSED', message: 'gone' });
    assert.deepEqual(snapshot([undefined, 'a', { b: undefined, a: new Uint8Array([1]) }]), [undefined, 'a', { a: 'AQ==' }]);
});

test('what is wrong says so where it is written', async () => {
    await assert.rejects(connect({ connect() {} }), error => failsWith('ERR_MCP_MISUSE')(error) && /Server of mcpbolt/.test(error.message));
    await assert.rejects(connect(make(), { test: {} }), error => failsWith('ERR_MCP_MISUSE')(error) && /onTestFinished/.test(error.message));
    const broken = make({ lifespan: { start: () => Promise.reject(new Error('no database')) } });
    await assert.rejects(connect(broken), /no database/);
});

const SERVER = `
    import { Server } from 'mcpbolt';
    export const clients = [];
    export const closed = () => clients.map(({ closed }) => closed?.code);
    export const server = new Server('plugged', '1').tool('add', {}, ({ a, b }) => String(a + b));
`;

/** The programs, in a folder where the package is installed: a link would have vitest transform the package, too. */
function place(files) {
    const project = mkdtempSync(join(tmpdir(), 'mcpbolt-testing-'));
    const to = join(project, 'node_modules/mcpbolt');
    const { pathname: from } = folder;
    for (const name of ['package.json', 'index.mjs', 'testing.mjs', 'dist']) cpSync(from + name, join(to, name), { recursive: true });
    for (const name of readdirSync(from)) if (name.endsWith('.node')) symlinkSync(from + name, join(to, name));
    symlinkSync(`${from}node_modules/vitest`, join(project, 'node_modules/vitest'));
    for (const [name, text] of Object.entries({ 'server.mjs': SERVER, ...files })) writeFileSync(join(project, name), text);
    return project;
}

// Nothing names the runner's parent, which would have it report to that instead of to us.
const { NODE_TEST_CONTEXT, ...env } = process.env;
const run = (cwd, ...args) => promisify(execFile)(process.execPath, args, { cwd, env, timeout: 60_000 });

test('under node:test a client is closed at the end of its test, and the program ends', async () => {
    const text = `
        import assert from 'node:assert/strict';
        import { after, test } from 'node:test';
        import { connect } from 'mcpbolt/testing';
        import { clients, closed, server } from './server.mjs';
        const shared = await connect(server, { test: { after } });
        test('adds', async t => {
            const client = await connect(server, { test: t });
            clients.push(client);
            assert.equal((await client.callTool('add', { a: 1, b: 2 })).content[0].text, '3');
        });
        test('was closed', async () => {
            assert.deepEqual(closed(), ['ERR_MCP_CLOSED_LOCALLY']);
            assert.equal((await shared.callTool('add', { a: 1, b: 2 })).content[0].text, '3');
        });
    `;
    const { stdout } = await run(place({ 'add.test.mjs': text }), '--test', '--test-reporter=tap', 'add.test.mjs');
    assert.match(stdout, /^# pass 2$/m);
    assert.match(stdout, /^# fail 0$/m);
});

test('under vitest likewise, with its snapshots', async () => {
    const text = `
        import { expect, test } from 'vitest';
        import { connect, snapshot } from 'mcpbolt/testing';
        import { clients, closed, server } from './server.mjs';
        test('adds', async ({ onTestFinished }) => {
            const client = await connect(server, { test: { onTestFinished } });
            clients.push(client);
            expect(snapshot(await client.callTool('add', { a: 1, b: 2 }))).toMatchInlineSnapshot(\`
              {
                "content": [
                  {
                    "text": "3",
                    "type": "text",
                  },
                ],
              }
            \`);
        });
        test('was closed', async context => {
            expect(closed()).toEqual(['ERR_MCP_CLOSED_LOCALLY']);
            const client = await connect(server, { test: context });
            clients.push(client);
            await expect(client.callTool('add')).resolves.toBeDefined();
        });
        test('by await using', async () => {
            {
                await using client = await connect(server);
                clients.push(client);
                expect((await client.listTools()).length).toBe(1);
            }
            expect(closed()).toEqual(Array(3).fill('ERR_MCP_CLOSED_LOCALLY'));
        });
    `;
    const vitest = new URL('node_modules/vitest/vitest.mjs', folder).pathname;
    const { stdout } = await run(place({ 'add.test.ts': text }), vitest, 'run', '--reporter=tap-flat');
    assert.equal(stdout.match(/^ok/gm)?.length, 3, stdout);
});

test('await using closes it', async () => {
    const source = `
        import { connect } from 'mcpbolt/testing';
        import { clients, closed, server } from './server.mjs';
        {
            await using client = await connect(server);
            clients.push(client);
            console.log((await client.callTool('add', { a: 1, b: 2 })).content[0].text);
        }
        console.log(closed().join());
    `;
    const { outputText } = ts.transpileModule(source, { compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext } });
    assert.equal((await run(place({ 'use.mjs': outputText }), 'use.mjs')).stdout, '3\nERR_MCP_CLOSED_LOCALLY\n');
});
