/** The SDKs' transport on stdin and stdout, on the engine. */
import { isMainThread } from 'node:worker_threads';
import { native, type NativeLink } from '../native';
import { Bridge } from '../sdk/bridge';
import { Delegated } from '../sdk/delegated';
import type { Package } from '../sdk/gate';
import { boundsBuffer, infoOf, streamsOf } from '../sdk/private';
import { reportOf } from '../sdk/report';
import { introductionOf } from '../sdk/said';
import { leaveToSdk, servedSince } from '../sdk/served';
import { protocolOf, type Message, type SendOptions } from '../sdk/shapes';
import { StdioServerTransport as Pipes } from '../sdk/stdio';
import * as say from './say';
import { Held, untilGivenBack, whyNotStdio, type Engine } from './stdin';
import { replace, whenSeen, whyCarried, type Connected, type Transport } from './taken';

/** The part of the engine that does the work of a transport. */
interface Carrier {
    send(message: Message, options?: SendOptions): Promise<void>;
    close(): Promise<void>;
}

const taken = new WeakSet<object>();
const carriers = new WeakMap<object, Carrier>();
const over = new WeakSet<object>();

/** @internal Has the engine do the work of a class of transports. */
export function joinStdio(prototype: Transport, release: Package, connectionOf: (transport: object) => Connected | undefined): void {
    const { start, send, close } = prototype;
    replace(prototype, 'start', async function (this: Transport) {
        // The SDK's own words.
        if (taken.has(this)) throw new Error('StdioServerTransport already started! If using Server class, note that connect() calls start() automatically.');
        taken.add(this);
        await untilGivenBack();
        const reason = obstacle(this);
        if (reason !== undefined) {
            say.kept('stdio', reason);
            taken.delete(this);
            return start.call(this);
        }
        const connected = connectionOf(this);
        const why = whyCarried(this, release, connected, sent);
        take(this, await (why === undefined ? accelerated(this, connected!) : carried(this, release)));
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

/** @internal Has a carrier do what a transport is asked to. */
export function take(transport: Transport, carrier: Carrier): void {
    taken.add(transport);
    carriers.set(transport, carrier);
}

/** @internal Whether a transport is one of these classes on stdin and stdout, and nobody has touched it. */
export function isUntouched(transport: Transport): boolean {
    const isOwn = sends.get(Object.getPrototypeOf(transport)) === transport.send && transport.onmessage === undefined;
    return isOwn && !taken.has(transport) && obstacle(transport) === undefined;
}

/** Why the engine cannot serve stdin and stdout; `undefined` if it can. */
function obstacle(transport: Transport): string | undefined {
    const [stdin, stdout] = streamsOf(transport);
    if (isMainThread && (stdin !== process.stdin || stdout !== process.stdout)) return 'the program has streams of its own';
    if (boundsBuffer(transport)) return 'it bounds its buffer itself';
    return whyNotStdio();
}

/** The engine reads, checks and writes the messages of a transport. */
class Carrying extends Pipes {
    held: Held | undefined;

    protected override open(wake: () => void): NativeLink {
        return native.wireStdio(wake);
    }

    protected override inputEnded(): void {
        this.held!.inputEnded();
    }

    /** Ends at once. */
    finish(waits: boolean): void {
        this.native?.finish(waits);
    }
}

async function carried(transport: Transport, { version }: Package): Promise<Carrier> {
    const pipes = new Carrying();
    pipes.onmessage = message => transport.onmessage?.(message);
    pipes.onerror = error => transport.onerror?.(error);
    const closed = new Promise<void>(resolve => (pipes.onclose = resolve));
    await pipes.start();
    const held = (pipes.held = new Held(pipes, closed, version.startsWith('2.') ? 2 : 1));
    void held.closed.then(() => ended(transport, held));
    return {
        send: message => pipes.send(message),
        close: () => held.close()
    };
}

/** The engine serves a server. */
async function accelerated(transport: Transport, { server }: Connected): Promise<Carrier> {
    const protocol = protocolOf(server)!;
    const bridge = new Bridge({ protocol });
    bridge.onmessage = (message, extra) => transport.onmessage?.(message, extra);
    bridge.onerror = error => transport.onerror?.(error);
    const served = servedSince(bridge, server);
    const delegated = new Delegated(introductionOf(protocol), { handshake: served });
    whenSeen(transport, () => {
        leaveToSdk(served);
        delegated.forgetLists();
    });
    const held = await hold(delegated, bridge.generation, error => transport.onerror?.(error));
    void held.closed.then(() => ended(transport, held));
    say.served('stdio', infoOf(protocol).name ?? '', reportOf(served));
    return {
        send: (message, options) => bridge.send(message, options),
        close: () => held.close()
    };
}

/** @internal Has the engine serve stdin and stdout. */
export async function hold(delegated: Delegated, generation: 1 | 2, onerror: (error: Error) => void): Promise<Held> {
    let held!: Held;
    delegated.inputEnded = () => held.inputEnded();
    const { link, ended } = await delegated.serveStdio(null);
    const engine: Engine = {
        finish: waits => (link.flush(), link.native.finish(waits)),
        keepAlive: isKept => link.keepAlive(isKept)
    };
    return (held = new Held(engine, ended.catch(onerror), generation));
}

/** Ends a transport. */
function ended(transport: Transport, { isTold }: Held): void {
    if (over.has(transport)) return;
    over.add(transport);
    if (isTold) transport.onclose?.();
}
