// The official SDK against ours, both ways: what each asks of the other, and what changes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client as TheirClient } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { folder, program, spawned } from './wire.mjs';

const REVISIONS = ['2025-06-18', '2025-11-25', '2026-07-28'];
const textOf = result => result.content.map(block => block.text).join();

const OURS = `
    import { Server } from 'mcpbolt';
    const form = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
    const server = new Server('ours', '1', { listChanges: true, subscriptions: true, onError: () => {} })
        .tool('ask', {}, async (_, ctx) => {
            const [filled, roots] = await Promise.all([ctx.elicit('Who?', form), ctx.roots()]);
            const said = await ctx.sample({ messages: 'Greet ' + filled.content.name, maxTokens: 10 });
            return said.content.text + ' at ' + roots[0].uri;
        })
        .tool('page', {}, async (_, ctx) => (await ctx.elicitUrl('Log in', 'https://example.com/login')).action)
        .tool('change', {}, () => {
            server.tool('added', {}, () => 'there');
            server.resourceUpdated('memo://a');
        })
        .resource('memo://a', {}, () => 'a')
        .prompt('greet', { arguments: [{ name: 'who', complete: value => [value + 'da'] }] }, ({ who }) => who);
    await server.run();
`;

for (const revision of REVISIONS) {
    test(`the SDK's client of our server, ${revision}`, async () => {
        const isLater = revision >= '2026';
        const capabilities = {
            elicitation: revision === '2025-06-18' ? {} : { form: {}, url: {} },
            sampling: {},
            roots: {}
        };
        const client = new TheirClient(
            { name: 'theirs', version: '1' },
            {
                capabilities,
                ...(isLater
                    ? { versionNegotiation: { mode: { pin: revision } } }
                    : { supportedProtocolVersions: [revision] })
            }
        );
        client.setRequestHandler('elicitation/create', ({ params }) =>
            params.mode === 'url' ? { action: 'accept' } : { action: 'accept', content: { name: 'Ada' } }
        );
        client.setRequestHandler('roots/list', () => ({ roots: [{ uri: 'file:///home' }] }));
        client.setRequestHandler('sampling/createMessage', ({ params }) => ({
            model: 'm',
            role: 'assistant',
            content: { type: 'text', text: `${params.messages[0].content.text}!` }
        }));
        const heard = [];
        for (const method of ['notifications/tools/list_changed', 'notifications/resources/updated'])
            client.setNotificationHandler(method, () => void heard.push(method));
        const env = { MCPBOLT_TRACE: process.env.MCPBOLT_TRACE ?? '' };
        const server = { command: process.execPath, args: program(OURS), cwd: folder.pathname, env };
        await client.connect(new StdioClientTransport(server));
        assert.equal(textOf(await client.callTool({ name: 'ask', arguments: {} })), 'Greet Ada! at file:///home');
        const page = await client.callTool({ name: 'page', arguments: {} });
        if (revision === '2025-06-18') assert.equal(page.isError, true);
        else assert.equal(textOf(page), 'accept');
        const { completion } = await client.complete({
            ref: { type: 'ref/prompt', name: 'greet' },
            argument: { name: 'who', value: 'A' }
        });
        assert.deepEqual(completion.values, ['Ada']);
        const listening = isLater
            ? await client.listen({ toolsListChanged: true, resourceSubscriptions: ['memo://a'] })
            : void (await client.subscribeResource({ uri: 'memo://a' }));
        await client.callTool({ name: 'change', arguments: {} });
        assert.equal(textOf(await client.callTool({ name: 'added', arguments: {} })), 'there');
        assert.deepEqual(heard.sort(), ['notifications/resources/updated', 'notifications/tools/list_changed']);
        await listening?.close();
        await client.close();
    });
}

const THEIRS = `
    import { completable, acceptedContent, inputRequired, inputResponse, McpServer } from '@modelcontextprotocol/server';
    import { serveStdio } from '@modelcontextprotocol/server/stdio';
    import * as z from 'zod/v4';
    const form = z.object({ name: z.string() });
    serveStdio(() => {
        const server = new McpServer({ name: 'theirs', version: '1' }, { capabilities: { logging: {} } });
        server.registerTool('ask', { inputSchema: z.object({}) }, async (_, { mcpReq }) => {
            const answers = mcpReq.inputResponses;
            const filled = acceptedContent(answers, 'who', form);
            const listed = inputResponse(answers, 'where');
            if (filled && listed.kind === 'roots')
                return { content: [{ type: 'text', text: filled.name + ' at ' + listed.roots[0].uri }] };
            return inputRequired({
                inputRequests: {
                    who: inputRequired.elicit({ message: 'Who?', requestedSchema: form }),
                    where: inputRequired.listRoots()
                }
            });
        });
        server.registerTool('say', { inputSchema: z.object({}) }, async (_, { mcpReq }) => {
            const said = inputResponse(mcpReq.inputResponses, 'said');
            if (said.kind === 'sampling') return { content: [said.result.content] };
            const messages = [{ role: 'user', content: { type: 'text', text: 'Hello' } }];
            return inputRequired({ inputRequests: { said: inputRequired.createMessage({ messages, maxTokens: 5 }) } });
        });
        server.registerTool('change', { inputSchema: z.object({}) }, async () => {
            server.registerTool('added', { inputSchema: z.object({}) }, () => ({ content: [{ type: 'text', text: 'there' }] }));
            return { content: [] };
        });
        server.registerPrompt(
            'greet',
            { argsSchema: z.object({ who: completable(z.string(), value => [value + 'da']) }) },
            ({ who }) => ({ messages: [{ role: 'user', content: { type: 'text', text: who } }] })
        );
        return server;
    });
`;

for (const revision of REVISIONS) {
    test(`our client of the SDK's server, ${revision}`, async () => {
        const client = await spawned(THEIRS, {
            revision,
            onElicitation: ({ requestedSchema }) => ({ action: 'accept', content: { [requestedSchema.required[0]]: 'Ada' } }),
            onSampling: ({ messages }) => ({ model: 'm', content: `${messages[0].content.text}!` }),
            roots: ['file:///home']
        });
        assert.equal(client.revision, revision);
        assert.equal(textOf(await client.callTool('ask')), 'Ada at file:///home');
        assert.equal(textOf(await client.callTool('say')), 'Hello!');
        assert.deepEqual((await client.complete({ prompt: 'greet' }, 'who', 'A')).values, ['Ada']);
        const changes = await client.listen({ tools: true }, { signal: AbortSignal.timeout(20_000) });
        await client.callTool('change');
        assert.deepEqual((await changes.next()).value, { type: 'toolsChanged' });
        assert.equal(textOf(await client.callTool('added')), 'there');
        changes.close();
        await client.close();
        assert.equal(client.strayCount, 0);
    });
}
