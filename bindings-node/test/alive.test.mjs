// What keeps a process alive, what is left open when it exits, and which async context handlers run in.
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { Server } from 'mcpbolt';
import { within } from './until.mjs';
import { connect, folder, program, Wire } from './wire.mjs';

/** How a program ends by itself: its status, and what it printed. */
async function ends(source, env = {}) {
    const child = spawn(process.execPath, program(source), { cwd: folder, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', text => (said += text));
    const [code] = await within('the end of the program', once(child, 'close'));
    return [code, said];
}

const open = made => `
import { Client, External, Front, Server } from 'mcpbolt';
const own = new Server('s', '1').tool('a', {}, () => 'a');
const server = ${made};
const serving = await server.serve('http://127.0.0.1:0/mcp');
const far = await Client.connect(serving.address, { name: 'far' });
const near = await Client.connect(server, { name: 'near' });
console.log((await far.callTool('a')).content[0].text, (await near.callTool('a')).content[0].text);
`;

const OPEN = open('own');
const MADE = {
    servers: 'own',
    fronts: `new Front(new External(own), { middleware: [{ request: (message, next) => next(message) }] })`,
    'servers with external servers': `own.mount('far', new External(new Server('far', '1').tool('b', {}, () => 'b')))`
};

for (const [name, made] of Object.entries(MADE)) test(`${name} and their clients with unref do not keep the process alive`, async () => {
    assert.deepEqual(await ends(`${open(made)} serving.unref(); far.unref(); near.unref();`), [0, 'a a\n']);
    // With ref again, only what closes them ends the process.
    assert.deepEqual(
        await ends(`${open(made)} for (const one of [serving, far, near]) one.unref().ref();
            setTimeout(async () => { console.log('alive'); await near.close(); await far.close(); await serving.close(); }, 50).unref();`),
        [0, 'a a\nalive\n']
    );
});

test('with MCPBOLT_OPEN, what is left open at the exit is named', async () => {
    const [code, said] = await ends(`${OPEN} process.exit(3);`, { MCPBOLT_OPEN: '1' });
    assert.equal(code, 3);
    const left = said.split('\n').filter(line => line.startsWith('mcpbolt: left open: '));
    assert.deepEqual(left.map(line => line.split(/[:,] ?/)[2]).sort(), ['client far', 'client near', 'server s', 'server s']);
    assert.ok(left.some(line => line.includes('opened at')), said);
    assert.deepEqual(await ends(`${OPEN} await near.close(); await far.close(); await serving.close();`, { MCPBOLT_OPEN: '1' }), [0, 'a a\n']);
});

for (const [name, source] of Object.entries({
    'on stdio': `new Server('s', '1').tool('exit', {}, () => process.exit(7)).use((call, next) => next()).run();`,
    'while HTTP is served': `const server = new Server('s', '1').tool('exit', {}, () => process.exit(7));
        await server.serve('http://127.0.0.1:0/mcp'); await server.run();`
}))
    test(`process.exit in a handler ends the process at once, ${name}`, async t => {
        const wire = await Wire.open(program(`import { Server } from 'mcpbolt'; ${source}`));
        t.after(() => wire.child.kill('SIGKILL'));
        wire.call('exit', 'exit');
        const { code, signal } = await within('the exit', wire.exit);
        assert.deepEqual([code, signal, wire.stderr], [7, null, '']);
    });

test('a worker thread with an open server and client ends when it is terminated, or by process.exit in a handler', async t => {
    const source = `const { Client, Server } = require('mcpbolt'); const { parentPort } = require('node:worker_threads');
        (async () => {
            const server = new Server('s', '1').tool('exit', {}, () => process.exit(5)).tool('a', {}, () => 'a');
            const { address } = await server.serve('http://127.0.0.1:0/mcp');
            const client = await Client.connect(address);
            parentPort.on('message', () => client.callTool('exit'));
            parentPort.postMessage((await client.callTool('a')).content[0].text);
        })();`;
    const begin = async () => {
        const worker = new Worker(source, { eval: true });
        t.after(() => worker.terminate());
        assert.deepEqual(await within('the answer', once(worker, 'message')), ['a']);
        return worker;
    };
    const terminated = await begin();
    await within('the end of the thread', terminated.terminate());
    const exiting = await begin();
    exiting.postMessage('exit');
    assert.deepEqual(await within('the exit of the thread', once(exiting, 'exit')), [5]);
});

test('handlers run in the async context in which the server was served, not in that of a request', async t => {
    const als = new AsyncLocalStorage();
    const server = new Server('s', '1').tool('who', {}, () => ({ store: als.getStore() ?? null }));
    const store = async client => (await client.callTool('who')).structuredContent.store;
    const handler = als.run('the endpoint', () => server.handler());
    const http = createServer((request, response) => als.run('a request', () => handler(request, response))).listen(0, '127.0.0.1');
    t.after(() => http.close());
    await once(http, 'listening');
    const address = `http://127.0.0.1:${http.address().port}/mcp`;
    for (const user of ['first', 'second']) {
        const client = await als.run(user, () => connect(address));
        assert.equal(await als.run(user, () => store(client)), 'the endpoint');
        await client.close();
    }
    const serving = await als.run('serve', () => server.serve('http://127.0.0.1:0/mcp'));
    t.after(() => serving.close());
    const client = await connect(serving.address);
    assert.equal(await als.run('a call', () => store(client)), 'serve');
    const near = await als.run('connect', () => connect(server));
    assert.equal(await als.run('a call', () => store(near)), 'connect');
});
