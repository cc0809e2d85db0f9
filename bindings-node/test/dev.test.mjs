// `mcpbolt dev`: a server that restarts when its files change, while its clients stay.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from 'mcpbolt';
import { COMMAND, LINES } from './programs.mjs';
import { until, within } from './until.mjs';
import { folder, Wire } from './wire.mjs';

const { looked } = createRequire(import.meta.url)('../dist/command/watch.js');

const SERVER = (version, more = '') => `
    import { setTimeout as pause } from 'node:timers/promises';
    import { Server } from 'mcpbolt';
    export default new Server('dev', '${version}')
        .tool('version', {}, () => '${version}')
        .tool('wait', {}, ({ ms }) => pause(ms, 'waited'))${more};
`;

/** A file of a server in a folder of its own, and how to write it. */
function server(text = SERVER('one')) {
    const project = mkdtempSync(join(tmpdir(), 'mcpbolt-dev-'));
    mkdirSync(join(project, 'node_modules'));
    symlinkSync(folder.pathname, join(project, 'node_modules/mcpbolt'));
    const file = join(project, 'server.mjs');
    const write = text => writeFileSync(file, text);
    write(text);
    return { project, file, write };
}

const clients = [];
afterEach(() => Promise.all(clients.splice(0).map(client => client.close())));

async function opened(file, args = [], options = {}) {
    const said = [];
    const command = [COMMAND, 'dev', file, ...args];
    const client = await Client.spawn(process.execPath, command, { revision: '2025-11-25', stderr: line => said.push(line), closeTimeout: 20_000, ...options });
    clients.push(client);
    return { client, said };
}

const textOf = result => result.content[0].text;

test('a client stays connected, and is told that the lists have changed', async () => {
    const { file, write } = server();
    const { client, said } = await opened(file);
    let told = 0;
    client.on('toolsChanged', () => told++);
    assert.deepEqual([client.capabilities.tools, textOf(await client.callTool('version'))], [{ listChanged: true }, 'one']);
    write(SERVER('two', `.tool('edition', {}, () => 'second')`));
    await until(() => told > 0);
    assert.deepEqual((await client.listTools()).map(({ name }) => name), ['version', 'wait', 'edition']);
    assert.deepEqual([textOf(await client.callTool('version')), textOf(await client.callTool('edition'))], ['two', 'second']);
    assert.match(said.join('\n'), /mcpbolt dev: \S*server\.mjs changed; restarting/);
});

for (const options of ['', `, { listChanges: true }`])
    test(`in 2026-07-28, a client that listens goes on listening${options && ' to a server that offers it'}`, async () => {
        const text = version => SERVER(version).replace(`'${version}')`, `'${version}'${options})`);
        const { file, write } = server(text('one'));
        const { client } = await opened(file, [], { revision: '2026-07-28' });
        assert.equal(textOf(await client.callTool('version')), 'one');
        const changes = await client.listen({ tools: true });
        for (const version of ['two', 'three']) {
            write(text(version));
            assert.deepEqual((await within('a change', changes.next())).value, { type: 'toolsChanged' });
            assert.equal(textOf(await client.callTool('version')), version);
        }
        await changes.return();
    });

test('requests in flight are answered, and so are those of a server that does not start', async () => {
    const { file, write } = server();
    const { client } = await opened(file, ['--grace', '3']);
    await client.callTool('version');
    const short = client.callTool('wait', { ms: 1000 });
    const long = client.callTool('wait', { ms: 60_000 }).catch(error => error);
    await client.ping();
    write('1 +');
    assert.equal(textOf(await short), 'waited');
    assert.equal((await long).code, 'ERR_MCP_PEER');
    const refused = () => client.callTool('version').then(() => false, ({ message }) => /not running/.test(message));
    await until(refused);
    write(SERVER('three'));
    await until(() => client.callTool('version').then(result => textOf(result) === 'three', () => false));
});

test('a client that comes before the server starts is greeted when it does', async () => {
    const { file, write } = server('1 +');
    const { client } = await Promise.all([opened(file), pause(1500).then(() => write(SERVER('one')))]).then(([one]) => one);
    assert.equal(textOf(await client.callTool('version')), 'one');
});

test('ids that are no safe integers are answered as they came', async () => {
    const { file, write } = server();
    const wire = await Wire.open([COMMAND, 'dev', file, '--grace', '0']);
    wire.send('{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"wait","arguments":{"ms":600000}}}');
    wire.call('a"b', 'wait', { ms: 600_000 });
    wire.call('sent', 'version', {});
    await wire.answer('sent');
    write(SERVER('two'));
    const lines = [];
    while (lines.filter(line => line.includes('"error"')).length < 2) lines.push(await wire.line());
    assert.ok(lines.some(line => line.startsWith('{"jsonrpc":"2.0","id":9007199254740993,"error":')), lines.join('\n'));
    assert.ok(lines.some(line => line.startsWith('{"jsonrpc":"2.0","id":"a\\"b","error":')), lines.join('\n'));
    assert.deepEqual(await within('its end', wire.end()), { code: 0, signal: null });
});

/** Opens a connection whose client can be asked, and answers nothing by itself. */
async function asked(file, protocolVersion) {
    const wire = new Wire([COMMAND, 'dev', file, '--grace', '0']);
    const params = { protocolVersion, capabilities: { elicitation: {} }, clientInfo: { name: 'test', version: '1' } };
    wire.send({ jsonrpc: '2.0', id: 'open', method: 'initialize', params });
    await within('an answer', wire.answer('open'));
    wire.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    const next = async is => {
        for (;;) {
            const message = JSON.parse(await within('a message', wire.line()));
            if (is(message)) return message;
        }
    };
    return { wire, next };
}

test('what a server has asked is cancelled at a restart, and a late answer reaches no other', async () => {
    const asks = version =>
        SERVER(version, `.tool('ask', {}, async (_, context) => {
            const { content } = await context.elicit('who?', { type: 'object', properties: { name: { type: 'string' } } });
            return '${version} ' + content.name;
        })`);
    const { file, write } = server(asks('one'));
    const { wire, next } = await asked(file, '2025-11-25');
    const isQuestion = ({ method }) => method === 'elicitation/create';
    const answer = ({ id }, name) => wire.send({ jsonrpc: '2.0', id, result: { action: 'accept', content: { name } } });
    const questions = [];
    for (const version of ['one', 'two', 'three']) {
        wire.call(version, 'ask', {});
        questions.push(await next(isQuestion));
        if (version === 'three') break;
        write(asks(version === 'one' ? 'two' : 'three'));
        const { params } = await next(({ method }) => method === 'notifications/cancelled');
        assert.equal(params.requestId, questions.at(-1).id);
        assert.equal((await next(({ id }) => id === version)).error.code, -32603);
        await next(({ method }) => method === 'notifications/tools/list_changed');
    }
    assert.equal(new Set(questions.map(({ id }) => id)).size, 3, 'each has an id of its own');
    for (const question of questions) answer(question, questions.indexOf(question) === 2 ? 'in time' : 'late');
    assert.equal((await next(({ id }) => id === 'three')).result.content[0].text, 'three in time');
    assert.deepEqual(await within('its end', wire.end()), { code: 0, signal: null });
});

test('requests of a batch in flight at a restart are answered', async () => {
    const { file, write } = server();
    const { wire, next } = await asked(file, '2025-03-26');
    const call = (id, name, args = {}) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } });
    wire.send([call(1, 'wait', { ms: 600_000 }), call('two', 'wait', { ms: 600_000 })]);
    wire.send([call(3, 'version'), { jsonrpc: '2.0', method: 'notifications/nothing' }]);
    assert.equal(textOf((await next(({ id }) => id === 3)).result), 'one');
    write(SERVER('two'));
    const refused = [await next(({ error }) => error), await next(({ error }) => error)];
    assert.deepEqual(refused.map(({ id, error }) => [id, error.code]), [[1, -32603], ['two', -32603]]);
    wire.send([call(4, 'version')]);
    assert.equal(textOf((await next(({ id }) => id === 4)).result), 'two');
    assert.deepEqual(await within('its end', wire.end()), { code: 0, signal: null });
});

test('a server that reads nothing is replaced', async () => {
    const { file, write } = server('console.error("up"); setInterval(() => {}, 1000); await new Promise(() => {});');
    const wire = new Wire([COMMAND, 'dev', file, '--grace', '0']);
    for (const line of LINES.slice(0, 2)) wire.send(line);
    const filler = { jsonrpc: '2.0', method: 'notifications/filler', params: { text: 'x'.repeat(10_000) } };
    // Beyond what the pipes hold.
    for (let i = 0; i < 400; i++) wire.send(filler);
    await until(() => /^up$/m.test(wire.stderr));
    write(SERVER('two'));
    await until(() => /restarting/.test(wire.stderr));
    wire.call(10, 'version', {});
    const { result } = await within('an answer', wire.answer(10));
    assert.equal(result.content[0].text, 'two');
    assert.deepEqual(await within('its end', wire.end()), { code: 0, signal: null });
});

test('a message that is too long to be read on the way arrives, and so does the next', async () => {
    const { file } = server();
    const wire = await Wire.open([COMMAND, 'dev', file]);
    wire.call(1, 'version', { text: 'x'.repeat(33 << 20) });
    wire.call(2, 'version', {});
    const { result } = await within('an answer', wire.answer(2));
    assert.deepEqual([result, ...wire.others.map(({ result }) => result)].map(textOf), ['one', 'one']);
    await wire.end();
});

for (const signal of ['SIGTERM', 'SIGINT'])
    test(`${signal} ends it`, async () => {
        const wire = await Wire.open([COMMAND, 'dev', server().file]);
        wire.child.kill(signal);
        assert.deepEqual(await within('its end', wire.exit), { code: 0, signal: null });
    });

test('over HTTP the server restarts', async t => {
    const { file, write } = server();
    const child = spawn(process.execPath, [COMMAND, 'dev', file, '--http', ':0']);
    t.after(() => child.kill());
    const lines = createInterface({ input: child.stderr })[Symbol.asyncIterator]();
    for (const version of ['one', 'two']) {
        let line = '';
        while (!line.includes('mcpbolt: serving')) line = (await within('a line', lines.next())).value;
        const client = await Client.connect(/http:\S+/.exec(line)[0]);
        assert.equal(textOf(await client.callTool('version')), version);
        await client.close();
        if (version === 'one') write(SERVER('two'));
    }
    const exit = once(child, 'exit');
    child.kill();
    assert.deepEqual(await within('its end', exit), [0, null]);
});

test('files of further folders are watched', async () => {
    const { project, file, write } = server();
    const other = join(mkdtempSync(join(tmpdir(), 'mcpbolt-dev-')), 'version.mjs');
    writeFileSync(other, `export const version = 'one';`);
    write(`
        import { Server } from 'mcpbolt';
        import { version } from ${JSON.stringify(other)};
        export const made = () => new Server('dev', '1').tool('version', {}, () => version);
    `);
    const { client } = await opened(`${file}:made`, ['--watch', join(other, '..')], { cwd: project });
    assert.equal(textOf(await client.callTool('version')), 'one');
    writeFileSync(other, `export const version = 'other';`);
    await until(() => client.callTool('version').then(result => textOf(result) === 'other', () => false));
});

test('only sources are looked at, and only so many', async () => {
    const { project } = server();
    for (const name of ['a.ts', 'b.txt', 'lib/c.cjs', 'lib/d.json', 'node_modules/e.js', '.git/f.js']) {
        mkdirSync(join(project, name, '..'), { recursive: true });
        writeFileSync(join(project, name), '');
    }
    let over = 0;
    const look = max => looked([project], () => over++, max);
    const names = async max => [...(await look(max)).keys()].map(path => path.slice(project.length + 1)).sort();
    const all = ['a.ts', 'lib/c.cjs', 'lib/d.json', 'server.mjs'];
    // With the two folders.
    assert.deepEqual([await names(), await names(6), over], [all, all, 0]);
    const some = await names(5);
    assert.deepEqual([some.length, some.every(name => all.includes(name)), over], [3, true, 1]);
    const before = (await look()).get(join(project, 'a.ts'));
    writeFileSync(join(project, 'a.ts'), '1');
    assert.notEqual((await look()).get(join(project, 'a.ts')), before);
    assert.deepEqual([...(await looked([join(project, 'none')]))], []);
});

const run = (cwd, ...args) => spawnSync(process.execPath, [COMMAND, ...args], { cwd, encoding: 'utf8', input: '', timeout: 30_000 });

test('each command has a help page', () => {
    for (const [command, ...words] of [
        ['run', 'MODULE[:NAME]', '--http', '--at', '--grace', '--anonymous', '--report'],
        ['dev', 'MODULE[:NAME]', '--watch', '--http', '--grace'],
        ['exec', 'PROGRAM', '--yes', 'MCPBOLT=off'],
        ['inspect', '--json', '--at', '--bearer'],
        ['call', '--json', '--at', 'TOOL']
    ]) {
        const { status, stdout, stderr } = run('.', command, '--help');
        assert.deepEqual([status, stderr], [0, ''], command);
        for (const word of words) assert.ok(stdout.includes(word), `${command} says ${word}`);
    }
    const { stdout } = run('.', '--help');
    for (const command of ['run', 'dev', 'exec', 'inspect', 'call', 'serve']) assert.match(stdout, new RegExp(`^ +${command} `, 'm'));
});

test('what is wrong is said, with status 2', () => {
    const { project } = server();
    writeFileSync(join(project, 'empty.mjs'), 'export const a = 1;');
    writeFileSync(join(project, 'typed.xyz'), '');
    for (const [args, said] of [
        [['run'], 'name the file that exports the server'],
        [['run', 'nowhere.mjs'], 'there is no file nowhere.mjs'],
        [['run', 'server.mjs', '--nothing'], `Unknown option '--nothing'`],
        [['run', 'server.mjs', '--watch', '.'], 'mcpbolt dev'],
        [['run', 'server.mjs', 'tcp::1', 'more'], 'more is one argument too many'],
        [['run', 'server.mjs', 'tcp::1', '--http', ':1'], 'give one address'],
        [['run', 'server.mjs', '--http', 'x'], '--http x is not [HOST]:PORT[/PATH]'],
        [['run', 'server.mjs', '--grace', 'soon'], '--grace soon is not a number of seconds'],
        [['run', 'server.mjs', '--at', 'nothing:'], 'nothing:'],
        [['run', 'server.mjs', '--http', '0.0.0.0:0'], 'anonymous'],
        [['run', 'empty.mjs'], 'empty.mjs exports no server'],
        [['run', 'server.mjs:other'], 'by the name of other'],
        [['run', 'typed.xyz'], 'cannot run typed.xyz'],
        [['dev', 'nowhere.mjs'], 'there is no file nowhere.mjs'],
        [['dev', 'server.mjs', '--watch', 'nowhere'], 'there is no folder nowhere'],
        [['exec', 'nothing-of-this-name'], 'there is no file, installed package or program'],
        [['inspect'], 'required'],
        [['nothing'], 'nothing']
    ]) {
        const { status, stderr } = run(project, ...args);
        assert.equal(status, 2, `${args}: ${stderr}`);
        assert.ok(stderr.includes(said), `${args}: ${stderr}`);
        if (['run', 'dev'].includes(args[0])) assert.match(stderr, new RegExp(`^mcpbolt ${args[0]}: error: .*; see mcpbolt ${args[0]} --help\n$`));
    }
});

test('an exception of the module itself is shown where it was thrown, with status 1', () => {
    const { project } = server(`throw new Error('no database');`);
    const { status, stderr } = run(project, 'run', 'server.mjs');
    assert.deepEqual([status, /no database\n.*server\.mjs:1/.test(stderr)], [1, true], stderr);
});

test('inspect and call show a server, and fail as its tools do', () => {
    const { project } = server(SERVER('one', `.tool('fails', {}, () => { throw new Error('secret'); })`));
    const started = ['--', process.execPath, COMMAND, 'run', 'server.mjs'];
    assert.match(run(project, 'inspect', ...started).stdout, /^dev one, revision 2026-07-28\n\ntools\n  version\n  wait\n  fails\n$/);
    assert.equal(JSON.parse(run(project, 'inspect', '--json', ...started).stdout).tools.length, 3);
    assert.equal(run(project, 'call', 'wait', '{"ms":1}', ...started).stdout, 'waited\n');
    const failed = run(project, 'call', 'fails', ...started);
    assert.deepEqual([failed.status, failed.stdout.includes('secret')], [1, false]);
    const none = run(project, 'call', 'none', ...started);
    assert.deepEqual([none.status, none.stderr], [1, 'error: the peer answered with error -32602: unknown tool "none"\n']);
});
