// Signals that end a process: heard by every server of it, one after the other, also while a handler holds the loop.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { afterEach, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { toolCall } from './http.mjs';
import { folder, program } from './wire.mjs';

const children = new Set();
afterEach(() => {
    for (const child of children) child.kill('SIGKILL');
    children.clear();
});

/** A program that prints an address when it is ready, and what else it prints. */
async function run(source) {
    const child = spawn(process.execPath, program(source), { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] });
    children.add(child);
    const ended = once(child, 'close').then(([code, signal]) => ({ code, signal }));
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const line = async () => (await lines.next()).value;
    return { child, ended, line, address: await line() };
}

const SECOND = `
    import { writeSync } from 'node:fs';
    import { Server } from 'mcpbolt';
    const server = new Server('again', '1').tool('hold', {}, () => { for (writeSync(1, 'held\\n'); ; ); });
    await (await server.serve('http://127.0.0.1:0/mcp')).close();
    const second = await server.serve('http://127.0.0.1:0/mcp', { grace: 60_000 });
    console.log(second.address);
    console.log(JSON.stringify(await second.ended));
`;

for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'])
    test(`a second server of a process hears ${name}`, { timeout: 20_000 }, async () => {
        const { child, ended, line } = await run(SECOND);
        child.kill(name);
        const number = { SIGTERM: 15, SIGINT: 2, SIGHUP: 1 }[name];
        assert.deepEqual(JSON.parse(await line()), { unanswered: 0, reason: 'signal', signal: number });
        assert.deepEqual(await ended, { code: 0, signal: null });
    });

test('a second server of a process hears signals while a handler holds the loop', { timeout: 20_000 }, async () => {
    const { child, ended, line, address } = await run(SECOND);
    const call = fetch(address, toolCall('hold')).catch(() => 'gone');
    assert.equal(await line(), 'held');
    for (let i = 0; i < 2; i++) {
        child.kill('SIGTERM');
        await pause(100);
    }
    // As by a signal that nobody hears: only `run` owns the process.
    assert.deepEqual(await ended, { code: null, signal: 'SIGTERM' });
    assert.equal(await call, 'gone');
});

test('a process whose servers have ended ends by a signal as any other', { timeout: 20_000 }, async () => {
    const { child, ended } = await run(`
        import { Server } from 'mcpbolt';
        const serving = await new Server('over', '1').serve('http://127.0.0.1:0/mcp');
        await serving.close();
        setInterval(() => {}, 1000);
        console.log(serving.address);
    `);
    child.kill('SIGTERM');
    assert.deepEqual(await ended, { code: null, signal: 'SIGTERM' });
});

test('a program that listens itself is left to do so', { timeout: 20_000 }, async () => {
    const { child, ended, line } = await run(`
        import { Server } from 'mcpbolt';
        process.on('SIGTERM', () => console.log('mine'));
        const serving = await new Server('heard', '1').serve('http://127.0.0.1:0/mcp');
        process.on('SIGINT', () => serving.close());
        console.log(serving.address);
        console.log((await serving.ended).reason);
    `);
    child.kill('SIGTERM');
    assert.equal(await line(), 'mine');
    child.kill('SIGINT');
    assert.equal(await line(), 'stopped');
    assert.deepEqual(await ended, { code: 0, signal: null });
});
