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
import { replace, whenSeen, whyCarried, type Connected, type Transport } from './taken';

/** How long calls in flight may still take when stdin has ended, in ms. */
const GRACE = 5000;
/** How long the process waits at its exit for the engine to write what it was given, in ms. */
const LAST_WRITES = 10;

/** What does the work of a transport. */
interface Carrier {
    send(message: Message, options?: SendOptions): Promise<void>;
    close(): Promise<void>;
}

const carriers = new WeakMap<object, Carrier>();

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
        stopReading(process.stdin);
        const connected = connectionOf(this);
        const why = whyCarried(this, release, connected, sent);
        carriers.set(this, await (why === undefined ? accelerated(this, connected!) : carried(this, release)));
        if (why !== undefined) say.carried('stdio', why);
    });
    function sent(this: Transport, message: Message, options?: SendOptions): Promise<void> {
        return carriers.get(this)?.send(message, options) ?? send.call(this, message, options);
    }
    replace(prototype, 'send', sent);
    replace(prototype, 'close', async function (this: Transport) {
        return carriers.get(this)?.close() ?? close.call(this);
    });
}

/** Why the engine cannot serve stdin and stdout; `undefined` if it can. */
function obstacle(transport: Transport): string | undefined {
    const [stdin, stdout] = streamsOf(transport);
    if (!isMainThread) return 'it runs in a worker thread';
    if (stdin !== process.stdin || stdout !== process.stdout) return 'the program has streams of its own';
    if (process.stdin.readableFlowing !== null) return 'the program has begun to read stdin';
    return undefined;
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
    const { link, ended: over } = await delegated.serveStdio(GRACE);
    // What was answered before the process exits is written, as it would be by the SDK.
    const exit = () => {
        link.flush();
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LAST_WRITES);
    };
    process.on('exit', exit);
    const closed = over.catch(error => transport.onerror?.(error)).finally(() => process.off('exit', exit));
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

const over = new WeakSet<object>();

/** Ends a transport, and stdin for those who listen to it. The first generation does not tell of the end of stdin. */
function ended(transport: Transport, isTold: boolean): void {
    if (over.has(transport)) return;
    over.add(transport);
    process.stdin.push(null);
    process.stdin.resume();
    if (isTold) transport.onclose?.();
}
