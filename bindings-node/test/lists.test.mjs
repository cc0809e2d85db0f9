// Lists that a client keeps for as long as the server says.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { Server } from 'mcpbolt';
import { connect, spawned } from './wire.mjs';

const names = tools => tools.map(({ name }) => name);

/** How often a list was asked for. */
const counted = () => {
    const counts = { asked: 0 };
    const trace = (direction, message) => (counts.asked += Number(direction === 'out' && message.includes('"tools/list"')));
    return [counts, trace];
};

test('a list is asked for again when its time is over, and not before (R-CCH-04)', async () => {
    for (const [options, revision, expected] of [
        [{ cacheLists: 60_000 }, '2026-07-28', [2, 2, 4]],
        // A list without a lifetime expires at once, and earlier revisions have no lifetimes.
        [undefined, '2026-07-28', [2, 4, 6]],
        [{ cacheLists: 60_000 }, '2025-11-25', [2, 4, 6]]
    ]) {
        const [counts, trace] = counted();
        const source = `
            import { Server } from 'mcpbolt';
            const server = new Server('lists', '1', ${JSON.stringify({ pageSize: 2, ...options })});
            for (const name of ['a', 'b', 'c']) server.tool(name, {}, () => '');
            await server.run();
        `;
        const client = await spawned(source, { revision, trace });
        const seen = [];
        for (const fresh of [false, false, true]) {
            const tools = await client.listTools({ fresh });
            assert.deepEqual(names(tools), ['a', 'b', 'c']);
            // A caller may change its array without an effect on the next.
            tools.pop();
            seen.push(counts.asked);
        }
        assert.deepEqual(seen, expected, revision);
    }
});

test('a list that is told to be another is asked for again (R-CCH-07)', async () => {
    const server = new Server('lists', '1', { listChanges: true, cacheLists: 60_000 });
    for (const name of ['a', 'b', 'c']) server.tool(name, {}, () => '');
    const client = await connect(server);
    const listening = await client.listen({ tools: true });
    await client.listTools();
    const told = once(client, 'toolsChanged');
    server.removeTool('b');
    await told;
    assert.deepEqual(names(await client.listTools()), ['a', 'c']);
    listening.close();
});

test('a list that does not know its cursor any more is asked for from its beginning (R-CCH-08)', async () => {
    const source = `
        import { createInterface } from 'node:readline';
        let asked = 0;
        const tool = name => ({ name, inputSchema: { type: 'object' } });
        const answers = {
            initialize: () => ({ result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } } }),
            'tools/list': ({ cursor } = {}) => {
                asked++;
                if (cursor === undefined) return { result: { tools: [tool('a' + asked)], nextCursor: 'from ' + asked } };
                if (cursor === 'from 1') return { error: { code: -32602, message: 'unknown cursor' } };
                return { result: { tools: [tool('b')] } };
            }
        };
        createInterface({ input: process.stdin }).on('line', line => {
            const { id, method, params } = JSON.parse(line);
            if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, ...answers[method](params) }));
        });
    `;
    const client = await spawned(source, { opening: 'handshake' });
    assert.deepEqual(names(await client.listTools()), ['a3', 'b']);
});
