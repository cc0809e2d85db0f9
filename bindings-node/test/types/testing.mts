// `mcpbolt/testing` with the types of node:test and vitest.
import { after, test } from 'node:test';
import { expect, test as vitestTest } from 'vitest';
import { Client, Server, type LogMessage, type Progress } from 'mcpbolt';
import { connect, snapshot, type Noted, type Tester } from 'mcpbolt/testing';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <_ extends true>() => {};

const server = new Server('typed', '1', { lifespan: { start: () => ({ rows: 1 }) } });

test('typed', async t => {
    const client: Tester = await connect(server, { test: t, revision: '2025-11-25', on: { closed: () => {} } });
    const plain: Client = client;
    holds<Equal<typeof client.logs, LogMessage[]>>();
    holds<Equal<typeof client.progress, Progress[]>>();
    holds<Equal<typeof client.notifications, Noted[]>>();
    const updated: Noted = ['resourceUpdated', 'memo://a'];
    // @ts-expect-error: no such notification
    const none: Noted = ['closed'];
    // @ts-expect-error: not the context of a test
    await connect(server, { test: {} });
    // @ts-expect-error: nothing but a server of this package
    await connect('http://127.0.0.1/mcp');
    return void [plain, updated, none];
});

await connect(server, { test: { after } });

vitestTest('typed', async context => {
    const client = await connect(server, { test: context });
    expect(snapshot(await client.listTools())).toMatchSnapshot();
    await using another = await connect(server);
    await another.ping();
});
