/** The SDKs' transport on stdin and stdout, on the engine. */
import { isMainThread } from 'node:worker_threads';
import { Bridge } from '../sdk/bridge';
import { Delegated } from '../sdk/delegated';
import type { Package } from '../sdk/gate';
import { infoOf, streamsOf, stopReading } from '../sdk/private';
import { Noted } from '../sdk/proof';
import { reportOf } from '../sdk/report';
import { introductionOf } from '../sdk/said';
import { servedBy } from '../sdk/served';
import { mcpServerOf, type Message, type SdkMcpServer, type SendOptions } from '../sdk/shapes';
import { StdioServerTransport as Pipes } from '../sdk/stdio';
import * as say from './say';
import { begin, endStdin, whyNotStdio } from './stdin';
import { replace, whenSeen, whyCarried, type Connected, type Transport } from './taken';

/** The part of the engine that does the work of a transport. */
interface Carrier {
    send(message: Message, options?: SendOptions): Promise<void>;
    close(): Promise<void>;
}

const carriers = new WeakMap<object, Carrier>();
const over = new WeakSet<object>();

/** @internal Has the engine do the work of a class of transports. */
export function joinStdio(prototype: Transport, release: Package, connectionOf: (transport: object) => Connected | undefined): void {
    const { start, send, close } = prototype;
    const taken = new WeakSet<object>();
    replace(prototype, 'start', async function (this: Transport) {
        // The SDK's own words.
        if (taken.has(this)) throw new Error('StdioServerTransport already started! If using Server class, note that connect() calls start() automatically.');
        const reason = obstacle(this);
        if (reason !== undefined) {
            say.kept('stdio', reason);
            return start.call(this);
        }
        taken.add(this);
        const connected = connectionOf(this);
        const why = whyCarried(this, release, connected, sent);
        carriers.set(this, await (why === undefined ? accelerated(this, connected!) : carried(this, release)));
        stopReading(process.stdin);
        if (why !== undefined) say.carried('stdio', why);
    });
    function sent(this: Transport, message: Message, options?: SendOptions): Promise<void> {
        return carriers.get(this)?.send(message, options) ?? send.call(this, message, options);
    }
    replace(prototype, 'send', sent);
    sends.set(prototype, sent);
    replace(prototype, 'close', async function (this: Transport) {
        return carriers.get(this)?.close() ?? close.call(this);
    });
}

/** The method by which each class sends. */
const sends = new WeakMap<object, unknown>();

/** @internal Whether a transport is one of these classes on stdin and stdout, and nobody has touched it. */
export function isUntouched(transport: Transport): boolean {
    const isOwn = sends.get(Object.getPrototypeOf(transport)) === transport.send && transport.onmessage === undefined;
    return isOwn && !carriers.has(transport) && obstacle(transport) === undefined;
}

/** Why the engine cannot serve stdin and stdout; `undefined` if it can. */
function obstacle(transport: Transport): string | undefined {
    const [stdin, stdout] = streamsOf(transport);
    if (isMainThread && (stdin !== process.stdin || stdout !== process.stdout)) return 'the program has streams of its own';
    return whyNotStdio();
}

/** The engine reads, checks and writes the messages of a transport. */
async function carried(transport: Transport, release: Package): Promise<Carrier> {
    const pipes = new Pipes();
    let isClosing = false;
    pipes.onmessage = message => transport.onmessage?.(message);
    pipes.onerror = error => transport.onerror?.(error);
    pipes.onclose = () => ended(transport, isClosing || release.version.startsWith('2.'));
    await pipes.start();
    return {
        send: message => pipes.send(message),
        close: () => ((isClosing = true), pipes.close())
    };
}

/** The engine serves an `McpServer`. */
async function accelerated(transport: Transport, { server }: Connected): Promise<Carrier> {
    const mcp = mcpServerOf(server) as SdkMcpServer;
    const protocol = mcp.server;
    const bridge = new Bridge({ protocol });
    let isClosing = false;
    bridge.onmessage = (message, extra) => transport.onmessage?.(message, extra);
    bridge.onerror = error => transport.onerror?.(error);
    bridge.onclose = () => ended(transport, isClosing || bridge.generation === 2);
    const proof = new Noted(mcp);
    const served = servedBy(bridge, mcp, proof);
    const delegated = new Delegated(introductionOf(protocol), { handshake: served });
    whenSeen(transport, () => {
        proof.isSeen = true;
        delegated.forgetLists();
    });
    const { link, closed } = await begin(delegated, error => transport.onerror?.(error));
    say.served('stdio', infoOf(protocol).name ?? '', reportOf(served));
    return {
        send: (message, options) => bridge.send(message, options),
        close: async () => {
            isClosing = true;
            delegated.close();
            // A handler may close its own server, and is not waited for.
            if (bridge.isIdle) return void (await closed);
            link.keepAlive(false);
            bridge.end();
        }
    };
}

/** Ends a transport. The first generation does not tell of the end of stdin. */
function ended(transport: Transport, isTold: boolean): void {
    if (over.has(transport)) return;
    over.add(transport);
    endStdin();
    if (isTold) transport.onclose?.();
}
