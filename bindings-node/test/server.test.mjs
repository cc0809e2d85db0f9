import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { until } from './until.mjs';
import { program, Wire } from './wire.mjs';

const SERVER = program(`
    import { writeSync } from 'node:fs';
    import { Server, ToolError, image, text } from 'mcpbolt';
    const server = new Server('test', '1.0', { lifespan: {
        start: async () => ({ since: 'start' }),
        stop: state => console.error('stopped since ' + state.since)
    } });
    const any = { inputSchema: { type: 'object' } };
    server
        .tool('echo', { inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] } },
            async ({ text }) => text)
        .tool('sync', {}, () => 'at once')
        .tool('object', {}, () => ({ a: 1 }))
        .tool('number', {}, () => 7)
        .tool('nothing', {}, () => {})
        .tool('bytes', {}, () => new Uint8Array([1, 2, 3]))
        .tool('image', {}, () => image(Buffer.from('png'), 'image/png'))
        .tool('blocks', {}, () => [text('one'), text('two')])
        .tool('result', {}, () => ({ content: [{ type: 'text', text: 'no' }], isError: true }))
        .tool('surrogate', any, ({ deep }) => deep ? { deep: ['\\\\ud800', '\\udead'] } : '\\ud800')
        .tool('escaped', {}, () => ({ text: '\\\\ud800' }))
        .tool('circular', {}, () => { const a = {}; a.a = a; return a; })
        .tool('throws', {}, () => { throw new Error('the password is 1234'); })
        .tool('rejects', {}, async () => { throw new Error('the password is 1234'); })
        .tool('refuses', {}, async () => { throw new ToolError('no such file'); })
        .tool('prints', {}, () => { console.log('stray'); process.stdout.write('stray\\n'); return 'printed'; })
        .tool('state', {}, (_, ctx) => ctx.state.since)
        .tool('busy', any, ({ ms }) => { writeSync(2, 'busy'); const end = Date.now() + ms; while (Date.now() < end); return 'free'; })
        .tool('never', {}, () => new Promise(() => {}))
        .tool('news', {}, async (_, ctx) => {
            ctx.progress(1, 3);
            ctx.log('warning', { half: true }, 'news');
            ctx.progress(2, 3, 'zwei');
            return 'done';
        })
        .resource('memo://a', { mimeType: 'text/plain' }, async uri => 'at ' + uri)
        .resource('memo://bytes', {}, () => new Uint8Array([1, 2, 3]))
        .resource('memo://fails', {}, () => { throw new Error('secret'); })
        .resourceTemplate('user://{id}', {}, async (uri, { id }) => uri + ' is ' + id)
        .prompt('greet', { arguments: [{ name: 'who', required: true }] }, ({ who }) => 'Greet ' + who);
    await server.run({ grace: Number(process.env.GRACE ?? 5000) });
`);

const content = async (wire, name, args = {}) => {
    wire.call(name, name, args);
    return (await wire.answer(name)).result;
};

test('natural values become results', async () => {
    const wire = await Wire.open(SERVER);
    const said = text => ({ content: [{ type: 'text', text }] });
    assert.deepEqual(await content(wire, 'echo', { text: 'hé\u2028"\n😀' }), said('hé\u2028"\n😀'));
    assert.deepEqual(await content(wire, 'sync'), said('at once'));
    assert.deepEqual(await content(wire, 'object'), { ...said('{"a":1}'), structuredContent: { a: 1 } });
    assert.deepEqual(await content(wire, 'number'), said('7'));
    assert.deepEqual(await content(wire, 'nothing'), { content: [] });
    assert.equal((await content(wire, 'bytes')).content[0].resource.blob, 'AQID');
    assert.deepEqual(await content(wire, 'image'), { content: [{ type: 'image', data: 'cG5n', mimeType: 'image/png' }] });
    assert.deepEqual(await content(wire, 'blocks'), { content: [...said('one').content, ...said('two').content] });
    assert.deepEqual(await content(wire, 'result'), { ...said('no'), isError: true });
    assert.deepEqual(await content(wire, 'state'), said('start'));
    assert.deepEqual(await wire.end(), { code: 0, signal: null });
    assert.match(wire.stderr, /stopped since start/);
});

test('failures are told without their text, unless it is meant to be shown', async () => {
    const wire = await Wire.open(SERVER);
    for (const name of ['throws', 'rejects', 'circular']) {
        const result = await content(wire, name);
        assert.deepEqual(result, { content: [{ type: 'text', text: 'the handler failed unexpectedly' }], isError: true });
    }
    for (const deep of [false, true]) assert.equal((await content(wire, 'surrogate', { deep })).isError, true);
    assert.deepEqual((await content(wire, 'escaped')).structuredContent, { text: '\\ud800' });
    assert.deepEqual(await content(wire, 'refuses'), { content: [{ type: 'text', text: 'no such file' }], isError: true });
    wire.send({ jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: 'memo://fails' } });
    assert.deepEqual((await wire.answer(1)).error, { code: -32603, message: 'the handler failed unexpectedly' });
    await wire.end();
    assert.match(wire.stderr, /password/);
});

test('resources and prompts are read and got', async () => {
    const wire = await Wire.open(SERVER);
    const ask = async (id, method, params) => {
        wire.send({ jsonrpc: '2.0', id, method, params });
        return (await wire.answer(id)).result;
    };
    assert.deepEqual(await ask(1, 'resources/read', { uri: 'memo://a' }), {
        contents: [{ uri: 'memo://a', mimeType: 'text/plain', text: 'at memo://a' }]
    });
    assert.deepEqual(await ask(2, 'resources/read', { uri: 'memo://bytes' }), {
        contents: [{ uri: 'memo://bytes', blob: 'AQID' }]
    });
    assert.deepEqual(await ask(3, 'resources/read', { uri: 'user://7%C3%A9' }), {
        contents: [{ uri: 'user://7%C3%A9', text: 'user://7%C3%A9 is 7é' }]
    });
    assert.deepEqual(await ask(4, 'prompts/get', { name: 'greet', arguments: { who: 'Ada' } }), {
        messages: [{ role: 'user', content: { type: 'text', text: 'Greet Ada' } }]
    });
    await wire.end();
});

test('what is printed does not reach the wire', async () => {
    const wire = await Wire.open(SERVER);
    wire.call(1, 'prints', {});
    assert.equal(JSON.parse(await wire.line()).result.content[0].text, 'printed');
    await wire.end();
    assert.match(wire.stderr, /stray\nstray/);
});

test('progress and log messages come in order, before the answer', async () => {
    const wire = await Wire.open(SERVER);
    wire.call(1, 'news', {}, { progressToken: 'p' });
    assert.equal((await wire.answer(1)).result.content[0].text, 'done');
    assert.deepEqual(
        wire.others.map(message => message.params),
        [
            { progressToken: 'p', progress: 1, total: 3 },
            { level: 'warning', logger: 'news', data: { half: true } },
            { progressToken: 'p', progress: 2, total: 3, message: 'zwei' }
        ]
    );
    wire.call(2, 'news', {});
    await wire.answer(2);
    assert.deepEqual(wire.others.slice(3).map(message => message.method), ['notifications/message']);
    await wire.end();
});

/** Half of the default grace period: a process that waits for the whole period ends too late. */
const LIMIT_MS = 2500;

/** Has a handler hold the loop of the server for so long. */
async function busy(wire, ms) {
    wire.call(1, 'busy', { ms });
    await until(() => wire.stderr.includes('busy'));
}

test('the process ends by itself, within the grace period when a handler never answers', async () => {
    const wire = await Wire.open(SERVER, { GRACE: 300 });
    wire.call(1, 'never', {});
    const asked = Date.now();
    assert.equal((await wire.end()).signal, null);
    const took = Date.now() - asked;
    assert.ok(took > 250 && took < LIMIT_MS, `${took} ms`);
});

test('the process ends within the grace period when a handler holds the loop', async () => {
    const wire = await Wire.open(SERVER, { GRACE: 300 });
    await busy(wire, 60_000);
    const asked = Date.now();
    assert.deepEqual(await wire.end(), { code: 1, signal: null });
    assert.ok(Date.now() - asked < LIMIT_MS);
});

test('a termination signal lets what is in flight be answered', async () => {
    const wire = await Wire.open(SERVER);
    await busy(wire, 200);
    wire.child.kill('SIGTERM');
    assert.equal((await wire.answer(1)).result.content[0].text, 'free');
    assert.deepEqual(await wire.exit, { code: 0, signal: null });
});

test('a second signal does not wait for a handler that holds the loop', async () => {
    const wire = await Wire.open(SERVER);
    await busy(wire, 60_000);
    wire.child.kill('SIGTERM');
    await new Promise(resolve => setTimeout(resolve, 100));
    const asked = Date.now();
    wire.child.kill('SIGTERM');
    assert.deepEqual(await wire.exit, { code: 1, signal: null });
    assert.ok(Date.now() - asked < LIMIT_MS, `${Date.now() - asked} ms`);
});

test('a reader that is gone ends even an idle server', async () => {
    const wire = await Wire.open(SERVER);
    wire.child.stdout.destroy();
    await wire.exit;
    assert.match(wire.stderr, /stopped since start/);
});

test('the death of its parent ends it, also when a handler holds the loop', async () => {
    const wrapper = `
        import { spawn } from 'node:child_process';
        const child = spawn(process.execPath, JSON.parse(process.env.SERVER), { stdio: 'inherit' });
        console.error('child ' + child.pid);
    `;
    for (const ms of [0, 60_000]) {
        const wire = await Wire.open(program(wrapper), { SERVER: JSON.stringify(SERVER) });
        const pid = Number(/child (\d+)/.exec(wire.stderr)[1]);
        await busy(wire, ms);
        wire.child.kill('SIGKILL');
        await until(() => !isRunning(pid));
    }
});

/** Whether a process still runs; one that nobody has reaped does not. */
function isRunning(pid) {
    try {
        return !/\) Z [^)]*$/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
    } catch {
        return false;
    }
}

for (const [name, letters] of Object.entries({ ascii: 'az', latin: 'aé', wide: 'aé€', astral: 'aé€😀' }))
    test(`a thousand calls at once are all answered: ${name}`, async () => {
        const wire = await Wire.open(SERVER);
        const text = i => Array.from({ length: i % 251 }, (_, at) => [...letters][(i + at) % [...letters].length]).join('');
        for (let i = 0; i < 1000; i++) wire.call(i, 'echo', { text: `${i} ${text(i)}` });
        for (let i = 0; i < 1000; i++) assert.equal((await wire.answer(i)).result.content[0].text, `${i} ${text(i)}`);
        await wire.end();
    });
