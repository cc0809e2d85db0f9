// Tools that are undone where they fail, and tools whose results are kept.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ActionError, Results, Server, ToolError } from 'mcpbolt';
import { until } from './until.mjs';
import { connect, failsWith } from './wire.mjs';

const taken = ['take room', 'take car'];
const undone = [...taken, 'give car', 'give room'];
const once = { retry: { tries: 1 } };

/** Books a room and a car, then ends as it is told to. */
function hotel(log, failures, isAsync) {
    const give = step => {
        log.push(`give ${step}`);
        if (step === 'car') throw new Error('one that fails leaves the others their turn');
    };
    const end = how => {
        if (how === 'typed') throw new ActionError('CONFLICT', 'taken');
        if (how === 'raised') throw new ToolError('no');
        if (how === 'failed') return { content: [{ type: 'text', text: 'no' }], isError: true };
        return { booked: how === 'unfit' ? 'no' : true };
    };
    const book = ({ how }, ctx, steps) => {
        for (const step of ['room', 'car']) {
            log.push(`take ${step}`);
            steps.taken(isAsync ? () => sleep(1).then(() => give(step)) : () => give(step));
        }
        if (how === 'late') return sleep(60_000, undefined, { ref: false, signal: ctx.signal });
        return isAsync ? sleep(1).then(() => end(how)) : end(how);
    };
    const outputSchema = { type: 'object', properties: { booked: { type: 'boolean' } }, required: ['booked'] };
    const onError = (error, what) => failures.push([what, error.message]);
    const server = new Server('hotel', '1', { actions: true, policy: { timeouts: { 'stay.book': 300 } }, onError });
    return server.tool('stay.book', { description: 'Books a stay.', atomic: true, outputSchema }, book);
}

for (const isAsync of [false, true])
    test(`what fails is undone, the last step first, ${isAsync ? 'later' : 'at once'} (R-ACT-18)`, { timeout: 30_000 }, async () => {
        const [log, failures] = [[], []];
        const server = hotel(log, failures, isAsync);
        const caller = await connect(server);
        const actor = await connect(server, { opening: 'actions' });
        const called = how => caller.callTool('stay.book', { how });
        const acted = how => actor.action('stay.book', { how }, once);
        const [tool] = await caller.listTools();
        assert.equal(tool.description, 'Books a stay. Atomic: what it did is undone where it fails.');
        assert.equal((await actor.actionSchemas())['stay.book'].atomic, 'transactional');

        assert.deepEqual([(await called('well')).structuredContent, log.splice(0)], [{ booked: true }, taken]);
        assert.deepEqual([(await acted('well')).data, log.splice(0)], [{ booked: true }, taken]);
        for (const how of ['typed', 'raised', 'failed', 'unfit'])
            for (const call of [called, acted]) {
                const ended = await call(how).catch(error => error);
                assert.ok(ended instanceof Error || ended.isError, how);
                assert.deepEqual(log.splice(0), undone, how);
            }
        assert.ok(failures.some(([what, why]) => what === 'tool stay.book' && why.includes('their turn')));
        for (const call of [called, acted]) {
            const ended = await call('late').catch(error => error);
            assert.ok(ended instanceof Error || ended.isError);
            await until(() => log.length === undone.length);
            assert.deepEqual(log.splice(0), undone);
        }
    });

for (const isAsync of [false, true])
    test(`results are kept, ${isAsync ? 'later' : 'at once'} (R-ACT-23)`, { timeout: 30_000 }, async () => {
        const [results, short] = [new Results(3_600_000, { scope: 'public' }), new Results(50, { scope: 'public' })];
        const runs = [];
        const price = ({ of }) => {
            runs.push(of);
            if (of === 'nothing') throw new ToolError('nothing has no price');
            const answer = { a: 'seven', b: { price: 7 } }[of];
            return answer ?? { content: [{ type: 'text', text: `${of}?` }], _meta: { 'com.example/a': 1 } };
        };
        const handler = isAsync ? async args => price(args) : price;
        const server = new Server('shop', '1', { actions: true }).tool('price.get', { kept: results }, handler).tool('price.short', { kept: short }, handler);
        const caller = await connect(server);
        const actor = await connect(server, { opening: 'actions' });
        for (const of of ['a', 'b', 'c']) {
            const first = await caller.callTool('price.get', { of });
            assert.deepEqual(await caller.callTool('price.get', { of }), first);
            const { data } = await actor.action('price.get', { of });
            if (of === 'b') assert.deepEqual(data, { price: 7 });
            assert.deepEqual((await actor.action('price.get', { of })).data, data);
            results.forget('price.short');
            await caller.callTool('price.get', { of });
            assert.deepEqual(runs, [of]);
            if (of === 'a') results.forgetAll();
            else results.forget('price.get');
            await caller.callTool('price.get', { of });
            assert.deepEqual(runs.splice(0), [of, of]);
        }
        for (let n = 0; n < 2; n += 1) assert.ok((await caller.callTool('price.get', { of: 'nothing' })).isError);
        assert.deepEqual(runs.splice(0), ['nothing', 'nothing']);
        await caller.callTool('price.short', { of: 'a' });
        await sleep(60);
        await caller.callTool('price.short', { of: 'a' });
        assert.deepEqual(runs, ['a', 'a']);
        assert.deepEqual((await actor.actionSchemas())['price.get'].cache, { ttl_ms: 3_600_000 });
        assert.throws(() => new Results(-1), failsWith('ERR_MCP_MISUSE'));
    });

test('private results are for who asked, behind who approves (R-ACT-23, R-S14-05)', async () => {
    const [runs, asked] = [[], []];
    const offer = policy =>
        new Server('shop', '1', {
            actions: true,
            ...(policy && { policy }),
            sanitise: { mine: (_, { of }) => ({ of: of.trim() }) },
            approval: { mine: (_, { of }) => asked.push(of) > 0 }
        }).tool('mine', { kept: new Results(3_600_000) }, ({ of }, ctx) => {
            runs.push(ctx.principal);
            return `${of} of ${ctx.principal}`;
        });
    const keys = { 'k-alice': { client: 'alice' }, 'k-bob': { client: 'bob' } };
    const actor = await connect(offer({ keys }), { opening: 'actions' });
    for (const [key, of] of [['k-alice', 'a'], ['k-bob', ' a'], ['k-alice', 'a '], ['k-bob', 'a']]) {
        const metadata = { auth: { type: 'api_key', key } };
        const { data } = await actor.action('mine', { of }, { metadata });
        assert.equal(data.content[0].text, `a of key:${key.slice(2)}`);
    }
    assert.deepEqual([runs.splice(0), asked], [['key:alice', 'key:bob'], ['a', 'a', 'a', 'a']]);
    const caller = await connect(offer());
    for (let n = 0; n < 2; n += 1) assert.equal((await caller.callTool('mine', { of: 'a' })).content[0].text, 'a of undefined');
    assert.equal(runs.length, 2);
});
