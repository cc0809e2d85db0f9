// How programs under `mcpbolt exec` end: exits, closes, the end of stdin, and threads that are busy meanwhile.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { call, COMMAND, executed, LINES, program, ran, write } from './programs.mjs';
import { until } from './until.mjs';
import { Wire } from './wire.mjs';

const CONNECT = 'server.connect(new StdioServerTransport())';
const OPEN = LINES.slice(0, 2);
/** What `mcpbolt exec` and node alone make of the same run. */
const both = async (file, options) => Promise.all([executed([file], options), ran([file], options)]);

test('a closed server leaves stdin to the next one', async t => {
    for (const generation of [1, 2]) {
        const text = program(generation, true, `
            let count = 1;
            const again = async () => {
                const next = new McpServer({ name: 'next' + ++count, version: '1' });
                next.registerTool('which', {}, async () => ({ content: [{ type: 'text', text: 'server ' + count }] }));
                next.registerTool('again', {}, async () => { await next.close(); await again(); });
                await next.connect(new StdioServerTransport());
                // The SDK leaves stdin paused.
                process.stdin.resume();
                console.error('ready', count);
            };
            server.registerTool('again', {}, async () => { await server.close(); await again(); });
            process.stdin.on('end', () => console.error('stdin has ended')).on('close', () => console.error('stdin is closed'));
            await ${CONNECT};`);
        const said = [];
        for (const how of [[COMMAND, 'exec'], []]) {
            const wire = await Wire.open([...how, write(`again${generation}.mjs`, text)]);
            t.after(() => wire.child.kill());
            const ready = async count => {
                await until(() => wire.stderr.includes(`ready ${count}`));
            };
            for (const count of [2, 3]) {
                wire.call(count, 'again', {});
                await ready(count);
                wire.send(LINES[0]);
                assert.equal((await wire.answer(1)).result.serverInfo.name, `next${count}`);
                wire.send(LINES[1]);
                wire.call(`which${count}`, 'which', {});
                assert.equal((await wire.answer(`which${count}`)).result.content[0].text, `server ${count}`);
            }
            // Whether the call that closes its server is answered differs by release of the SDK.
            said.push([await wire.end(), wire.stderr]);
        }
        assert.deepEqual(said[0], said[1]);
        assert.match(said[0][1], /stdin has ended\nstdin is closed/);
    }
});

test('a program reads stdin itself once its server is closed', async t => {
    const file = write('reads-later.mjs', program(1, true, `
        await ${CONNECT};
        server.registerTool('mine', {}, async () => {
            await server.close();
            process.stdin.on('data', text => console.error('heard', String(text).trim())).resume();
            console.error('ready');
        });`));
    for (const how of [[COMMAND, 'exec'], []]) {
        const wire = await Wire.open([...how, file]);
        t.after(() => wire.child.kill());
        wire.call(2, 'mine', {});
        await until(() => wire.stderr.includes('ready'));
        wire.send('hello');
        await until(() => wire.stderr.includes('heard'));
        assert.deepEqual([(await wire.end()).code, wire.stderr], [0, 'ready\nheard hello\n']);
    }
});

test('a thread that is busy when stdin ends still answers', { timeout: 60_000 }, async () => {
    const busy = 'const until = Date.now() + 6000; while (Date.now() < until);';
    const cases = [1, 2].map(generation => program(generation, true, `server.registerTool('busy', {}, async () => { ${busy} return { content: [] }; }); await ${CONNECT};`));
    await Promise.all(cases.map(async (text, at) => {
        const [ours, own] = await both(write(`busy${at}.mjs`, text), { lines: [...OPEN, call(2, {}, 'busy')], last: null });
        assert.deepEqual([ours.exit, ours.answers[2]], [own.exit, own.answers[2]], ours.err);
        assert.deepEqual([ours.exit, ours.answers[2]?.result], [0, { content: [] }], ours.err);
    }));
});

test('a call outlives the end of stdin for as long as the program lives', { timeout: 60_000 }, async () => {
    const long = `server.registerTool('long', {}, async () => { await new Promise(done => setTimeout(done, 6000)); return { content: [] }; }); await ${CONNECT};`;
    const never = `server.registerTool('long', {}, () => new Promise(() => {})); await ${CONNECT};`;
    await Promise.all([long, never].map(async (end, at) => {
        const [ours, own] = await both(write(`long${at}.mjs`, program(1, true, end)), { lines: [...OPEN, call(2, {}, 'long')], last: null });
        assert.deepEqual([ours.exit, ours.answers], [own.exit, own.answers], ours.err);
        assert.equal(ours.answers[2] !== undefined, at === 0);
    }));
});

/** Runs a program whose stdout is read slowly; gives its exit and what it wrote. */
async function readSlowly(t, how, file, lines, { signal, bytes = 256 << 10 } = {}) {
    const child = spawn(process.execPath, [...how, file]);
    t.after(() => child.kill('SIGKILL'));
    child.stdin.on('error', () => {});
    const last = lines.at(-1);
    child.stdin.write(lines.slice(0, -1).map(line => `${line}\n`).join(''));
    let [out, err] = ['', ''];
    child.stderr.setEncoding('utf8').on('data', text => {
        err += text;
        if (text.includes('made')) child.stdin.write(`${last}\n`);
        if (signal && text.includes('ready')) child.kill(signal);
    });
    child.stdout.setEncoding('utf8');
    const closed = new Promise(resolve => child.on('close', (code, by) => resolve(by ?? code)));
    // Nothing is read before the process has begun to exit.
    await until(() => err.includes('exiting'));
    let taken = 0;
    for await (const text of child.stdout) {
        out += text;
        taken += text.length;
        if (taken > bytes) await new Promise(done => setTimeout(done, 100 * (taken = 0) + 100));
    }
    return { exit: await closed, ids: out.split('\n').filter(Boolean).map(line => JSON.parse(line).id), bytes: out.length };
}

test('what is answered before an exit reaches a slow reader', { timeout: 60_000 }, async t => {
    const large = `server.registerTool('large', {}, async () => (made(), { content: [{ type: 'text', text: 'x'.repeat(1 << 20) }] }));
        let count = 0; const made = () => ++count === 3 && setImmediate(() => console.error('made'));`;
    const exits = `server.registerTool('exit', {}, async () => { console.error('exiting'); process.exit(7); });`;
    const cleans = `const last = setInterval(() => {}, 1000); process.on('SIGTERM', () => { console.error('exiting'); process.exit(3); });`;
    const low = `import { CallToolRequestSchema } from '@modelcontextprotocol/sdk/types.js';
        const low = new Server({ name: 'low', version: '1' }, { capabilities: { tools: {} } });
        low.setRequestHandler(CallToolRequestSchema, async ({ params }) => params.name === 'exit' ? (console.error('exiting'), process.exit(7)) : (made(), { content: [{ type: 'text', text: 'x'.repeat(1 << 20) }] }));
        let count = 0; const made = () => ++count === 3 && setImmediate(() => console.error('made'));
        await low.connect(new StdioServerTransport());`;
    const calls = [...OPEN, ...[2, 3, 4].map(id => call(id, {}, 'large'))];
    for (const [name, text, lines, signal] of [
        ['exits', program(1, true, `${large} ${exits} await ${CONNECT};`), [...calls, call(5, {}, 'exit')]],
        ['exits-2', program(2, true, `${large} ${exits} await ${CONNECT};`), [...calls, call(5, {}, 'exit')]],
        ['low', program(1, true, low), [...calls, call(5, {}, 'exit')]],
        ['cleans', program(1, true, `${large} ${cleans} server.registerTool('ready', {}, async () => { setTimeout(() => console.error('ready'), 50); return { content: [] }; }); await ${CONNECT};`), [...calls, call(5, {}, 'ready')], 'SIGTERM']
    ]) {
        const file = write(`slowly-${name}.mjs`, text);
        const done = await readSlowly(t, [COMMAND, 'exec'], file, lines, { signal });
        assert.deepEqual([done.exit, done.ids.sort()], [signal ? 3 : 7, signal ? [1, 2, 3, 4, 5] : [1, 2, 3, 4]], name);
        assert.ok(done.bytes > 3 << 20);
    }
});

const SERVES = `${program(2, true, '').replace('const server', 'const make = () => { const server')}return server; };
    import { serveStdio } from '@modelcontextprotocol/server/stdio';`;

test('a transport that serveStdio is given is that of its server', async t => {
    const file = write('given-closes.mjs', `${SERVES}
        const transport = new StdioServerTransport();
        const handle = serveStdio(() => { const server = make(); server.server.onclose = () => console.error('server closed'); server.registerTool('quit', {}, async () => { await transport.close(); await handle.close(); console.error('after'); return { content: [] }; }); return server; }, { transport });
        setTimeout(() => transport.start().catch(error => console.error('again', error.message)), 200);`);
    for (const how of [[COMMAND, 'exec'], []]) {
        const wire = await Wire.open([...how, file]);
        t.after(() => wire.child.kill());
        await until(() => wire.stderr.includes('again'));
        wire.call(2, 'quit', {});
        // Stdin stays open: the process ends since its transport is closed.
        const exit = await wire.exit;
        const said = wire.stderr.split('\n').filter(Boolean);
        assert.deepEqual([exit.code, said.some(line => line.startsWith('again StdioServerTransport already started!')), said.at(-1)], [0, true, 'after'], wire.stderr);
        assert.ok(said.includes('server closed'));
    }
});

test('servers that were made before a factory failed are closed', async () => {
    const file = write('half.mjs', `${SERVES}
        let count = 0;
        serveStdio(() => {
            const server = make(), id = ++count, { close } = server;
            if (id === 2) throw new Error('not now');
            server.close = () => (console.error('closed', id), close.call(server));
            return server;
        });`);
    const done = await executed([file]);
    assert.equal(done.answers[2].result.content[0].text, '3', done.err);
    assert.equal(done.err.match(/^closed 1$/gm)?.length, 1, done.err);
    assert.match(done.told[0], /: it cannot be served: not now$/);
});

test('a program that looks at the raw streams is told that it sees nothing', async () => {
    const file = write('watches.mjs', program(1, true, `
        const { write } = process.stdout; process.stdout.write = function (...args) { return write.apply(this, args); };
        const { emit } = process.stdin; process.stdin.emit = function (...args) { return emit.apply(this, args); };
        await ${CONNECT};`));
    const { told, exit } = await executed([file]);
    assert.equal(exit, 0);
    for (const name of ['process.stdin.emit', 'process.stdout.write']) assert.ok(told.includes(`stdio: ${name}, which the program replaced, sees no messages`), told.join('\n'));
    assert.match(told.join('\n'), /the engine serves/);
});
