// Handlers that ask their client, in both eras: by requests of the server, and by rounds of the call.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { McpError, Server } from 'mcpbolt';
import * as z from 'zod';
import { until } from './until.mjs';
import { connect, failsWith, folder, program, spawned, Wire } from './wire.mjs';

const FORM = { type: 'object', properties: { name: { type: 'string', minLength: 1 } }, required: ['name'] };
const said = text => ({ role: 'assistant', model: 'm', content: { type: 'text', text } });
const textOf = result => result.content.map(block => block.text).join();

/** Each test in both eras. */
const eras = (name, run) => {
    for (const opening of ['handshake', 'stateless']) test(`${name}, ${opening}`, t => run(opening, t));
};

/** A server with one tool, and a client of it. */
async function joined(opening, tool, answers) {
    const server = new Server('asks', '1', { onError: () => {} }).tool('ask', {}, tool);
    return { server, client: await connect(server, { opening, ...answers }) };
}

eras('a form is filled in, refused, or left (R-ELI-07, R-ELI-11)', async opening => {
    const outcomes = [{ action: 'accept', content: { name: 'Ada' } }, { action: 'decline' }, { action: 'cancel' }];
    const asked = [];
    const { client } = await joined(opening, async (_, ctx) => await ctx.elicit('Who?', FORM), {
        onElicitation: form => (asked.push(form), outcomes[asked.length - 1])
    });
    for (const outcome of outcomes) {
        assert.deepEqual((await client.callTool('ask')).structuredContent, outcome);
    }
    assert.deepEqual(asked[0], { mode: 'form', message: 'Who?', requestedSchema: FORM });
    await client.close();
});

eras('what is filled in is held against the form (R-ELI-06)', async opening => {
    const tool = async (_, ctx) => ctx.elicit('Who?', FORM);
    const answers = { onElicitation: () => ({ action: 'accept', content: { name: '' } }) };
    const { client } = await joined(opening, tool, answers);
    const call = client.callTool('ask');
    // The client does not send it: the server's question fails, or the call is not repeated (R-MRT-15).
    if (opening === 'stateless') await assert.rejects(call, failsWith('ERR_MCP_CANCELLED'));
    else assert.equal((await call).isError, true);
    await client.close();
});

eras('a schema of a library asks and checks', async opening => {
    const schema = z.object({ email: z.email(), age: z.number().int().min(18).default(20), colour: z.enum(['red', 'blue']) });
    let form;
    const tool = async (_, ctx) => {
        const { action, content } = await ctx.elicit('You?', schema);
        return { action, content };
    };
    const { client } = await joined(opening, tool, {
        onElicitation: asked => ((form = asked.requestedSchema), { action: 'accept', content: { email: 'a@b.ch', colour: 'red' } })
    });
    const { structuredContent } = await client.callTool('ask');
    assert.deepEqual(structuredContent, { action: 'accept', content: { email: 'a@b.ch', age: 20, colour: 'red' } });
    assert.deepEqual(Object.keys(form).sort(), ['properties', 'required', 'type']);
    assert.deepEqual(form.properties.email, { type: 'string', format: 'email' });
    await client.close();
});

eras('a page is visited; its end is told where there is a word for it (R-ELI-10)', async opening => {
    const pages = [];
    const done = [];
    const tool = async (_, ctx) => {
        const { action } = await ctx.elicitUrl('Log in', 'https://example.com/login', 'errand');
        ctx.elicitationComplete('errand');
        return action;
    };
    const { client } = await joined(opening, tool, {
        onElicitationUrl: page => (pages.push(page), { action: 'accept' }),
        on: { elicitationComplete: id => done.push(id) }
    });
    assert.equal(textOf(await client.callTool('ask')), 'accept');
    const page = { mode: 'url', message: 'Log in', url: 'https://example.com/login' };
    const isNamed = opening === 'handshake';
    assert.deepEqual(pages, [isNamed ? { ...page, elicitationId: 'errand' } : page]);
    assert.deepEqual(done, isNamed ? ['errand'] : []);
    await client.close();
});

eras('the model is asked (R-SMP-01)', async opening => {
    let asked;
    const tool = async (_, ctx) => {
        const { content, model } = await ctx.sample({ messages: 'How much?', maxTokens: 10, systemPrompt: 'Be brief.' });
        return `${model}: ${content.text}`;
    };
    const { client } = await joined(opening, tool, { onSampling: request => ((asked = request), { model: 'm', content: '42' }) });
    assert.equal(textOf(await client.callTool('ask')), 'm: 42');
    const messages = [{ role: 'user', content: { type: 'text', text: 'How much?' } }];
    assert.deepEqual(asked, { messages, maxTokens: 10, systemPrompt: 'Be brief.' });
    await client.close();
});

eras('the model is given tools only if the client says so (R-CAP-05, R-SMP-02)', async opening => {
    const tools = [{ name: 'look', inputSchema: { type: 'object' } }];
    const tool = async (_, ctx) => {
        const outcome = await ctx.sample({ messages: '?', maxTokens: 1, tools }).catch(error => error);
        return outcome instanceof McpError ? outcome.code : outcome.content.type;
    };
    const onSampling = () => ({ model: 'm', content: { type: 'tool_use', id: '1', name: 'look', input: {} } });
    for (const [samplingTools, expected] of [
        [true, 'tool_use'],
        [false, 'ERR_MCP_UNSUPPORTED']
    ]) {
        const { client } = await joined(opening, tool, { onSampling, samplingTools });
        assert.equal(textOf(await client.callTool('ask')), expected);
        await client.close();
    }
});

eras('roots are shown, and replaced (R-ROO-01, R-ROO-02)', async opening => {
    const { client } = await joined(opening, async (_, ctx) => ({ roots: await ctx.roots() }), { roots: ['file:///a'] });
    const roots = async () => (await client.callTool('ask')).structuredContent.roots;
    assert.deepEqual(await roots(), [{ uri: 'file:///a' }]);
    client.setRoots([{ uri: 'file:///b', name: 'B' }]);
    assert.deepEqual(await roots(), [{ uri: 'file:///b', name: 'B' }]);
    assert.throws(() => client.setRoots(['https://example.com']), failsWith('ERR_MCP_MISUSE'));
    await client.close();
});

eras('what a client does not offer is not asked (R-CAP-03, R-ELI-02)', async opening => {
    const tool = async (_, ctx) => {
        const asks = [
            ctx.elicit('?', FORM),
            ctx.elicitUrl('?', 'https://example.com'),
            ctx.sample({ messages: '?', maxTokens: 1 }),
            ctx.roots()
        ];
        const codes = (await Promise.allSettled(asks)).map(({ reason }) => reason?.code);
        return codes.join();
    };
    const unsupported = Array(4).fill('ERR_MCP_UNSUPPORTED');
    const { client } = await joined(opening, tool, {});
    assert.equal(textOf(await client.callTool('ask')), unsupported.join());
    await client.close();
});

eras('questions that are asked together go out together', async opening => {
    const runs = [];
    let asked = 0;
    let everything;
    const all = new Promise(resolve => (everything = resolve));
    const tool = async (_, ctx) => {
        runs.push('begun');
        try {
            const said = await Promise.all(['a', 'b', 'c'].map(text => ctx.sample({ messages: text, maxTokens: 1 })));
            return said.map(({ content }) => content.text).join('');
        } finally {
            runs.push('ended');
        }
    };
    const { client } = await joined(opening, tool, {
        onSampling: async ({ messages }) => {
            // One by one from the answer to a call, all of them as requests.
            if (++asked === 3 || opening === 'stateless') everything();
            await all;
            return { model: 'm', content: messages[0].content.text.toUpperCase() };
        }
    });
    assert.equal(textOf(await client.callTool('ask')), 'ABC');
    // With rounds, one for all three: the handler ran twice, and its `finally` each time.
    assert.equal(runs.length, opening === 'stateless' ? 4 : 2);
    await client.close();
});

test('a handler runs anew in each round, and what it asked before is there at once (R-MRT-05, R-MRT-11)', async () => {
    const log = [];
    const tool = async (_, ctx) => {
        log.push('begun');
        ctx.signal.addEventListener('abort', () => log.push('aborted'));
        try {
            const first = await ctx.sample({ messages: 'first', maxTokens: 1 });
            log.push(first.content.text);
            const second = await ctx.sample({ messages: `second after ${first.content.text}`, maxTokens: 1 });
            return second.content.text;
        } catch (error) {
            log.push(error.code);
            throw error;
        }
    };
    const asked = [];
    const { client } = await joined('stateless', tool, {
        onSampling: ({ messages }) => (asked.push(messages[0].content.text), said(String(asked.length)))
    });
    assert.equal(textOf(await client.callTool('ask')), '2');
    assert.deepEqual(asked, ['first', 'second after 1']);
    const over = ['aborted', 'ERR_MCP_ROUND_OVER'];
    assert.deepEqual(log, ['begun', ...over, 'begun', '1', ...over, 'begun', '1']);
    await client.close();
});

eras('resources and prompts ask, too; completions do not (R-MRT-01, R-CMP-06)', async opening => {
    const ask = async ctx => (await ctx.sample({ messages: '?', maxTokens: 1 })).content.text;
    let refused;
    const complete = async (_value, _args, ctx) => {
        const code = await ask(ctx).catch(error => error.code);
        refused = code;
        return [];
    };
    const server = new Server('asks', '1')
        .resource('memo://a', {}, (_, ctx) => ask(ctx))
        .prompt('greet', { arguments: [{ name: 'who', complete }] }, (_, ctx) => ask(ctx));
    const client = await connect(server, { opening, onSampling: () => said('yes') });
    assert.equal((await client.readResource('memo://a'))[0].text, 'yes');
    assert.equal((await client.getPrompt('greet')).messages[0].content.text, 'yes');
    await client.complete({ prompt: 'greet' }, 'who', '');
    assert.equal(refused, opening === 'stateless' ? 'ERR_MCP_UNSUPPORTED' : 'yes');
    await client.close();
});

test('a state that is not ours is refused, and the handler not run (R-MRT-08, R-MRT-13)', async () => {
    let runs = 0;
    const { client } = await joined('stateless', (_, ctx) => (runs++, ctx.roots()), { roots: [] });
    for (const params of [
        { name: 'ask', requestState: 'forged' },
        { name: 'ask', inputResponses: { x: 7 } }
    ]) {
        await assert.rejects(client.request('tools/call', params), error => failsWith('ERR_MCP_PEER')(error) && error.rpcCode === -32602);
    }
    assert.equal(runs, 0);
    await client.close();
});

test('servers of one key continue each other’s rounds (R-MRT-08)', async () => {
    const wire = async key => {
        const source = `
            import { Server } from 'mcpbolt';
            const stateKey = new Uint8Array(32).fill(${key});
            await new Server('asks', '1', { stateKey }).tool('ask', {}, async (_, ctx) => ({ roots: await ctx.roots() })).run();
        `;
        return new Wire(program(source));
    };
    const _meta = {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
        'io.modelcontextprotocol/clientCapabilities': { roots: {} }
    };
    const ask = async (server, id, more) => {
        server.send({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'ask', arguments: {}, ...more, _meta } });
        return server.answer(id);
    };
    const [one, two, other] = await Promise.all([7, 7, 8].map(wire));
    const { result } = await ask(one, 1, {});
    assert.equal(result.resultType, 'input_required');
    const [[key, question]] = Object.entries(result.inputRequests);
    assert.equal(question.method, 'roots/list');
    const answers = { inputResponses: { [key]: { roots: [{ uri: 'file:///a' }] } }, requestState: result.requestState };
    assert.deepEqual((await ask(two, 1, answers)).result.structuredContent, { roots: [{ uri: 'file:///a' }] });
    assert.equal((await ask(other, 1, answers)).error.code, -32602);
    await Promise.all([one, two, other].map(server => server.end()));
    assert.throws(() => new Server('asks', '1', { stateKey: new Uint8Array(31) }), failsWith('ERR_MCP_MISUSE'));
});

eras('a call that is cancelled takes its questions along', async opening => {
    const log = [];
    const controller = new AbortController();
    const { client } = await joined(
        opening,
        async (_, ctx) => {
            await ctx.sample({ messages: '?', maxTokens: 1 }).catch(error => log.push(error.code));
        },
        {
            onSampling: (_, { signal }) =>
                new Promise((_, no) => {
                    signal.addEventListener('abort', () => (log.push('withdrawn'), no(signal.reason)));
                    controller.abort();
                })
        }
    );
    await assert.rejects(client.callTool('ask', {}, { signal: controller.signal }), failsWith('ERR_MCP_CANCELLED'));
    await until(() => log.length >= 2);
    assert.deepEqual(log.sort(), [opening === 'stateless' ? 'ERR_MCP_ROUND_OVER' : 'ERR_MCP_CANCELLED', 'withdrawn'].sort());
    await client.close();
});

eras('what a client’s handler throws is told without its text, unless it is meant to be', async opening => {
    const seen = [];
    const thrown = [new Error('secret'), new McpError('ERR_MCP_CANCELLED', 'the user said no')];
    const { client } = await joined(
        opening,
        async (_, ctx) => {
            const error = await ctx.sample({ messages: '?', maxTokens: 1 }).catch(error => error);
            if (error.code === 'ERR_MCP_ROUND_OVER') throw error;
            return error.message;
        },
        {
            onSampling: () => {
                throw thrown[seen.length];
            },
            onError: (error, what) => seen.push([error, what])
        }
    );
    for (const text of ['the handler failed unexpectedly', 'the user said no']) {
        // With rounds the call is given up here, and the server never hears of it (R-MRT-15).
        const told = await client.callTool('ask').then(textOf, error => error.message);
        assert.ok(told.includes(text), told);
    }
    assert.deepEqual(seen, thrown.map(error => [error, 'onSampling']));
    await client.close();
});

eras('questions nest, three deep, both ways', async opening => {
    const server = new Server('deep', '1').tool('down', {}, async ({ depth }, ctx) => {
        if (depth === 0) return 'bottom';
        const { content } = await ctx.sample({ messages: String(depth), maxTokens: 1 });
        return `${depth} ${content.text}`;
    });
    const client = await connect(server, {
        opening,
        onSampling: async ({ messages }, { client }) => {
            const depth = Number(messages[0].content.text) - 1;
            return said(textOf(await client.callTool('down', { depth })));
        }
    });
    assert.equal(textOf(await client.callTool('down', { depth: 3 })), '3 2 1 bottom');
    await client.close();
});

eras('a thousand questions at once', async opening => {
    const { client } = await joined(
        opening,
        async ({ n }, ctx) => (await ctx.sample({ messages: `${n}`, maxTokens: 1 })).content.text,
        { onSampling: async ({ messages }) => said(messages[0].content.text) }
    );
    const calls = Array.from({ length: 1000 }, (_, n) => client.callTool('ask', { n }));
    assert.deepEqual((await Promise.all(calls)).map(textOf), Array.from(calls.keys(), String));
    await client.close();
});

for (const revision of ['2024-11-05', '2025-06-18', '2025-11-25', '2026-07-28']) {
    test(`a server in a process of its own asks, ${revision}`, async () => {
        const client = await spawned(
            `
            import { Server } from 'mcpbolt';
            await new Server('asks', '1')
                .tool('ask', {}, async (_, ctx) => {
                    ctx.progress(1, 2);
                    const [{ content }, roots] = await Promise.all([ctx.sample({ messages: 'Who?', maxTokens: 5 }), ctx.roots()]);
                    ctx.progress(2, 2);
                    return content.text + ' at ' + roots[0].uri;
                })
                .run();
            `,
            { revision, onSampling: () => said('Ada'), roots: ['file:///home'] }
        );
        const seen = [];
        const result = await client.callTool('ask', {}, { onProgress: ({ progress }) => seen.push(progress) });
        assert.equal(textOf(result), 'Ada at file:///home');
        assert.deepEqual(seen, revision === '2026-07-28' ? [1, 1, 2] : [1, 2]);
        assert.deepEqual(await client.close(), { code: 0, signal: null });
        assert.equal(client.strayCount, 0);
    });
}

test('roots are shown while JavaScript is busy', async () => {
    const client = await spawned(
        `
        import { Server } from 'mcpbolt';
        await new Server('asks', '1').tool('ask', {}, async (_, ctx) => {
            const began = performance.now();
            await ctx.roots();
            return performance.now() - began;
        }).run();
        `,
        { opening: 'handshake', roots: [] }
    );
    const call = client.callTool('ask');
    // The request goes out; then this thread is held for longer than the question may take.
    for (const end = Date.now() + 4000; Date.now() < end; );
    assert.ok(Number(textOf(await call)) < 2000, textOf(await call));
    await client.close();
});
