// The engine by itself. Nothing here runs.
import { Connection, decode, Decoder, encodeError, encodeRequest, json, Message, Request } from 'mcpbolt/engine';
import type { Event, Id, Integers, MessageKind } from 'mcpbolt/engine';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <_ extends true>() => {};

const message = decode(new Uint8Array(), { integers: 'bigint', maxDepth: 10 });
holds<Equal<typeof message, Message>>();
holds<Equal<typeof message.kind, MessageKind>>();
holds<Equal<typeof message.id, Id | undefined>>();
holds<Equal<typeof message.rawParams, Buffer | undefined>>();
const text: string = encodeRequest(1n, 'm', json('{}')) + encodeError(null, -1, '');
const messages: Message[] = new Decoder({ framing: 'length', maxMessageBytes: 10 }).feed(Buffer.from(text)).drain();
const modes: Integers[] = ['number', 'bigint', 'text'];

const connection = new Connection({ side: 'server', name: 'a', capabilities: { tools: {} }, revisions: ['2025-11-25'], now: 0 });
connection.feed('', 1);
for (const event of connection.drain()) {
    holds<Equal<typeof event, Event>>();
    if (event.type === 'request') {
        holds<Equal<typeof event, Request>>();
        event.progress(1, 2, 'half');
        event.fail('not found', 'no', { messages, modes });
    } else if (event.type === 'answered') {
        if (event.error) holds<Equal<typeof event.message, undefined>>();
        else holds<Equal<typeof event.message, Message>>();
    } else if (event.type === 'stray') event.frame.length;
}
const number: number = connection.request('ping', {}, { timeout: 5, progress: true });
connection.cancel(number, 'enough');
const output: Buffer | undefined = connection.output();
void output;

// @ts-expect-error: no such side
new Connection({ side: 'both', name: 'a' });
// @ts-expect-error: no such kind
new Request().fail('lost', '');
