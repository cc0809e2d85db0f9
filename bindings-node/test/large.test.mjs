// Messages of 64 MiB each way at once, through the pipes of a child.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client } from 'mcpbolt';
import { folder, program, Wire } from './wire.mjs';

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
