// Servers of the official SDKs, by themselves and on our engine: what goes over the wire is the same, but for what is
// listed here by name.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { inspect, isDeepStrictEqual } from 'node:util';
import { SCRIPT, nameOf } from './script.mjs';
import { Wire } from './wire.mjs';

const THEIRS = fileURLToPath(new URL('theirs.mjs', import.meta.url));
const CLIENT = {
    capabilities: { roots: {}, sampling: {}, elicitation: { form: {} }, experimental: { a: {} } },
    clientInfo: { name: 'equal', version: '1', title: 'Equal' }
};
/** What the server asks is answered so. */
const ANSWERS = {
    'roots/list': { roots: [{ uri: 'file:///home' }] },
    'elicitation/create': { action: 'accept', content: { name: 'Ada' } },
    'sampling/createMessage': { model: 'm', role: 'assistant', content: { type: 'text', text: 'ho' } }
};

class Talk {
    constructor(generation, how) {
        this.wire = new Wire([THEIRS, String(generation), how]);
    }

    async open(protocolVersion) {
        this.wire.send({ jsonrpc: '2.0', id: 'open', method: 'initialize', params: { protocolVersion, ...CLIENT } });
        const { result } = await this.wire.answer('open');
        this.wire.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
        return result;
    }

    /** What comes until an answer: that, and the rest in order. */
    async #until(id) {
        const others = [];
        for (;;) {
            const { id: at, ...message } = JSON.parse(await this.wire.line());
            if (message.method && at !== undefined) this.wire.send({ jsonrpc: '2.0', id: at, result: ANSWERS[message.method] });
            if (at === id && !message.method) return { answer: message, others };
            others.push(message);
        }
    }

    async step(index, { cancel, ...request }) {
        this.wire.send({ jsonrpc: '2.0', id: index, ...request });
        const first = cancel ? { others: [] } : await this.#until(index);
        if (cancel) {
            // Its handler is to have begun.
            await this.#barrier(`begun ${index}`);
            const reason = cancel === true ? {} : { reason: cancel };
            this.wire.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: index, ...reason } });
        }
        const { others } = await this.#barrier(`after ${index}`);
        return { ...first, others: [...first.others, ...others] };
    }

    #barrier(id) {
        this.wire.call(id, 'slow', { ms: 2 });
        return this.#until(id);
    }
}

/** Where the SDK departs from the specification and ours does not: what it sends, as ours sends it. */
const DIFFERENCES = [
    {
        // R-RPC-14: "The message SHOULD be limited to a concise single sentence."
        what: 'errors are told on one line',
        of: ({ answer: { error } = {} }) => error?.message.includes('\n'),
        as: ({ answer, others }) => ({ answer: { ...answer, error: { ...answer.error, message: answer.error.message.replace(/\s+/g, ' ') } }, others })
    }
];

/** What ours is to send, and the differences that were met. */
function expectedOf(theirs, met) {
    for (const { what, of, as } of DIFFERENCES)
        if (of(theirs)) {
            met.add(what);
            theirs = as(theirs);
        }
    return theirs;
}

for (const generation of [1, 2])
    for (const revision of ['2025-06-18', '2025-11-25'])
        test(`McpServer v${generation} in ${revision}: ${SCRIPT.length} interactions are the same`, async () => {
            const [theirs, ours] = [new Talk(generation, 'sdk'), new Talk(generation, 'accelerated')];
            assert.deepEqual(await ours.open(revision), await theirs.open(revision));
            const [unlike, met] = [[], new Set()];
            for (const [index, step] of SCRIPT.entries()) {
                const [sent, actual] = await Promise.all([theirs.step(index, step), ours.step(index, step)]);
                const expected = expectedOf(sent, met);
                if (!isDeepStrictEqual(actual, expected)) unlike.push({ step: nameOf(step), actual, expected });
            }
            assert.equal(unlike.length, 0, inspect(unlike, { depth: 9 }));
            assert.equal(met.size, DIFFERENCES.length);
            assert.deepEqual(await ours.wire.end(), await theirs.wire.end());
        });
