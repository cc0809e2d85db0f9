// Servers of the official SDKs, by themselves and on our engine: what goes over the wire is the same, but for what is
// listed here by name.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { inspect, isDeepStrictEqual } from 'node:util';
import { COMMAND } from './programs.mjs';
import { SCRIPT, nameOf } from './script.mjs';
import { DIFFERENCES, expectedOf, Talk } from './talk.mjs';

const THEIRS = fileURLToPath(new URL('theirs.mjs', import.meta.url));
/** Over HTTP ours answers every request, also one that was cancelled (R-HTP-04). */
const talk = (generation, how, carrier, isLow = false) => {
    const args = how === 'exec' ? [COMMAND, 'exec', THEIRS, String(generation), 'sdk', carrier] : [THEIRS, String(generation), how, carrier];
    return new Talk(args, carrier, carrier === 'http' && how !== 'sdk', isLow ? { LOW: '1' } : {});
};

/** Streams of HTTP are not in order beside each other, and ids of sessions and requests are who serves' own. */
function asOverHttp({ answer, others }) {
    const plain = value => JSON.stringify(value, (_, value) => (isObject(value) ? Object.fromEntries(Object.entries(value).sort()) : value));
    const said = plain(answer).replace(/"\[\d+,(.*?),(\\"[0-9a-f-]{32,36}\\"|null)/, '"[$1');
    return { said, others: others.map(plain).sort() };
}

const isObject = value => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Waits until both have been told as much of what belongs to no request. */
async function settled(theirs, ours) {
    for (let i = 0; i < 200 && ours.length < theirs.length; i++) await new Promise(resolve => setTimeout(resolve, 10));
}

const require = createRequire(import.meta.url);

/** Releases before 1.25 have no transport for web-standard requests. */
function carriersOf(generation) {
    try {
        if (generation === 1) require.resolve('@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js');
        return ['stdio', 'http'];
    } catch {
        return ['stdio'];
    }
}

// Most of the time is spent waiting for what comes behind an answer.
describe('in the revisions with a handshake', { concurrency: 3 }, () => {
    for (const [generation, isLow] of [[1, false], [2, false], [1, true]])
        for (const carrier of carriersOf(generation))
            for (const how of isLow ? ['accelerated', 'exec'] : ['accelerated', 'transport', 'exec'])
                for (const revision of how === 'accelerated' && carrier === 'stdio' ? ['2025-06-18', '2025-11-25'] : ['2025-11-25'])
                    test(`${isLow ? 'Server' : 'McpServer'} v${generation}, ${how} over ${carrier}, ${revision}: ${SCRIPT.length} interactions are the same`, async () => {
                        const [theirs, ours] = ['sdk', how].map(how => talk(generation, how, carrier, isLow));
                        assert.deepEqual(await ours.open(revision), await theirs.open(revision));
                        const [unlike, met] = [[], new Set()];
                        const order = carrier === 'http' ? talk => asOverHttp({ answer: talk.answer ?? null, others: talk.others }) : talk => talk;
                        for (const [index, step] of SCRIPT.entries()) {
                            const [sent, actual] = await Promise.all([theirs.step(index, step), ours.step(index, step)]);
                            // On pipes what the SDK writes is carried as it stands.
                            const isOwn = how === 'transport' && carrier === 'stdio';
                            const expected = isOwn ? sent : expectedOf(sent, met);
                            if (!isDeepStrictEqual(order(actual), order(expected))) unlike.push({ step: nameOf(step), actual, expected });
                        }
                        assert.equal(unlike.length, 0, inspect(unlike, { depth: 9 }));
                        if (how !== 'transport' || carrier === 'http') assert.equal(met.size, DIFFERENCES.length);
                        if (carrier === 'http') {
                            await settled(theirs.wire.standing, ours.wire.standing);
                            assert.deepEqual(ours.wire.standing, theirs.wire.standing);
                            await Promise.all([theirs.wire.end(), ours.wire.end()]);
                        } else assert.deepEqual(await ours.wire.end(), await theirs.wire.end());
                    });
});

/** What a request says of itself from 2026-07-28 on. */
const ENVELOPE = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'equal', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } }
};

test('createMcpHandler in 2026-07-28: the interactions that it has are the same', async () => {
    const [theirs, ours] = ['sdk', 'accelerated'].map(how => talk(2, how, 'entry'));
    const unlike = [];
    const gone = ['logging/setLevel', 'resources/subscribe', 'resources/unsubscribe', 'ping'];
    const asking = ['roots', 'elicit', 'sample', 'change', 'log', 'subscribed', 'wait', 'ended'];
    const steps = SCRIPT.filter(({ method, params }) => !gone.includes(method) && !asking.includes(params?.name));
    for (const [index, { method, params }] of [{ method: 'server/discover' }, ...steps].entries()) {
        const { name = params?.uri } = params ?? {};
        const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method, ...(typeof name === 'string' && { 'mcp-name': name }) };
        const message = { jsonrpc: '2.0', id: index, method, params: { ...params, _meta: { ...params?._meta, ...ENVELOPE } } };
        const [expected, actual] = await Promise.all(
            [theirs, ours].map(({ wire }) => {
                wire.send(message, headers);
                return wire.whole(index);
            })
        );
        const same = [actual, expected].map(all => asOverHttp(expectedOf({ answer: all.at(-1), others: all.slice(0, -1) })));
        if (!isDeepStrictEqual(...same)) unlike.push({ step: nameOf({ method, params }), actual, expected });
    }
    assert.equal(unlike.length, 0, inspect(unlike, { depth: 9 }));
    await Promise.all([theirs.wire.end(), ours.wire.end()]);
});
