// Messages of 64 MiB each way at once, through the pipes of a child.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, Json, Server } from 'mcpbolt';
import { connect, folder, program, Wire } from './wire.mjs';

const BYTES = 64 << 20;
const SERVER = program(`
    import { Server } from 'mcpbolt';
    await new Server('large', '1')
        .tool('echo', {}, ({ text }) => text)
        .tool('make', {}, ({ bytes }) => 'y'.repeat(bytes))
        .tool('peak', {}, () => process.resourceUsage().maxRSS)
        .run();
`);

test('large messages cross each other', async t => {
    const text = 'x'.repeat(BYTES);
    const client = await Client.spawn(process.execPath, SERVER, { cwd: folder.pathname });
    const peak = async () => Number((await client.callTool('peak')).content[0].text);
    const before = await peak();
    // While one is read there, the other's answer is on its way here.
    const [made, echoed] = await Promise.all([
        client.callTool('make', { bytes: BYTES }),
        client.callTool('echo', { text })
    ]);
    assert.equal(made.content[0].text, 'y'.repeat(BYTES));
    assert.equal(echoed.content[0].text, text);
    const grown = (await peak()) - before;
    t.diagnostic(`the server grew by ${grown >> 10} MiB; this process peaks at ${process.resourceUsage().maxRSS >> 10} MiB`);
    assert.ok(grown < 12 * (BYTES >> 10), `${grown} KiB`);
    await client.close();
});

test('what is longer than others take is served: 11 MB, and what follows it', async () => {
    const wire = await Wire.open(SERVER);
    for (const [id, unit] of [['ascii', 'x'], ['unicode', 'é']]) {
        const text = unit.repeat((11 << 20) / Buffer.byteLength(unit));
        wire.call(id, 'echo', { text });
        wire.call(`after ${id}`, 'make', { bytes: 3 });
        const { result } = await wire.answer(id);
        assert.ok(result.content[0].text === text, id);
        assert.equal((await wire.answer(`after ${id}`)).result.content[0].text, 'yyy');
    }
    assert.deepEqual(await wire.end(), { code: 0, signal: null });
});

const LONG = 'x'.repeat(40_000);

/** Arguments as JSON: whatever stands in them, the handler gets what JSON.parse gives. */
const ARGUMENTS = {
    'one long text': `{"text":"${LONG}"}`,
    'texts among others': `{"a":1,"b":"${LONG}","c":{"d":"${LONG}"},"e":"${LONG}é","f":[null]}`,
    'escapes, and characters of all widths': `{"a":"${LONG}\\n\\"\\u00e9","b":"${LONG}é","c":"${LONG}\u{1f600}\\ud83d\\ude00"}`,
    'names that are escaped, or empty': `{"a\\u0062":"${LONG}","":"${LONG}"}`,
    'the name of the prototype': `{"__proto__":"${LONG}","constructor":"${LONG}"}`,
    'a name twice': `{"a":"${LONG}","b":"${LONG}","a":"last","b":"${LONG}!"}`,
    'a name twice, escaped': `{"a":"${LONG}","\\u0061":2}`,
    'more than a few': `{${Array.from('abcdefghijkl', name => `"${name}":"${LONG}${name}"`)}}`,
    'space around': ` { "a" : "${LONG}" , "b" : [ 1 ] , "c" : "${LONG}" } `,
    'long integers': `{"a":9007199254740993,"b":"${LONG}"}`
};

for (const integers of ['number', 'bigint'])
    test(`arguments with long texts are what JSON.parse gives (integers: ${integers})`, async () => {
        const taken = {};
        const later = [];
        const take = (args, { argumentsJson }) => {
            taken.args = args;
            taken.json = argumentsJson;
            return 'ok';
        };
        const prompt = { arguments: [{ name: 'text' }] };
        const server = new Server('large', '1', { integers })
            .tool('take', {}, take)
            .tool('late', {}, async (args, context) => {
                await new Promise(resolve => setImmediate(resolve));
                later.push(context);
                return take(args, context);
            })
            .prompt('ask', prompt, ({ text }) => text);
        const client = await connect(server, { integers });
        for (const [name, json] of Object.entries(ARGUMENTS)) {
            const expected = JSON.parse(json);
            if (integers === 'bigint' && name === 'long integers') expected.a = 9007199254740993n;
            for (const tool of ['take', 'late']) {
                await client.callTool(tool, new Json(json));
                assert.deepEqual(Object.entries(taken.args), Object.entries(expected), `${name}: ${tool}`);
                assert.equal(Object.getPrototypeOf(taken.args), Object.prototype);
                assert.deepEqual(JSON.parse(taken.json), JSON.parse(json), name);
            }
        }
        assert.ok(later.every(({ argumentsJson }) => argumentsJson === '{}'));
        const { messages } = await client.getPrompt('ask', { text: `${LONG}é` });
        assert.equal(messages[0].content.text, `${LONG}é`);
    });
