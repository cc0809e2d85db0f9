// A conversation with a server program, step by step: everything that is said until it is quiet again.
import assert from 'node:assert/strict';
import { Posting } from './posting.mjs';
import { Wire } from './wire.mjs';

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

/** With a server that has a tool `slow`; `toldOfCancels`: whether it answers a cancelled request. */
export class Talk {
    constructor(args, carrier, toldOfCancels = false, env = {}) {
        this.toldOfCancels = toldOfCancels;
        this.wire = carrier === 'stdio' ? new Wire(args, env) : new Posting(args, env);
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
            if (this.toldOfCancels) assert.equal((await this.#until(index)).answer.error.code, -32800);
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
export const DIFFERENCES = [
    {
        // R-RPC-14: "The message SHOULD be limited to a concise single sentence."
        what: 'errors are told on one line',
        of: ({ answer: { error } = {} }) => error?.message.includes('\n'),
        as: ({ answer, others }) => ({ answer: { ...answer, error: { ...answer.error, message: answer.error.message.replace(/\s+/g, ' ') } }, others })
    }
];

/** What ours is to send, and the differences that were met. */
export function expectedOf(theirs, met = new Set()) {
    for (const { what, of, as } of DIFFERENCES)
        if (of(theirs)) {
            met.add(what);
            theirs = as(theirs);
        }
    return theirs;
}
