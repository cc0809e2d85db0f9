import type { Receiver } from './link';
import type { NativeMount } from './native';

/** @internal Receives one answer. */
export interface Taker {
    head(status: number, headers: string[]): void;
    piece(text: string, isLast: boolean): void;
    /** Called when there is room for more of the request's body. */
    room(): void;
}

/** @internal A whole answer. */
export interface Answer {
    status: number;
    headers: string[];
    text: string;
}

/** @internal Adapts requests and answers, whose headers are names and values in turn. */
export interface Names {
    in(headers: string[]): void;
    /** The answer to a request of that method waits for what this returns, which may be another answer in its place. */
    out(headers: string[], status: number, method: string): Promise<Answer | undefined> | undefined;
    /** Maximum size of a body that is still to be read, in bytes, and the answer to a longer one. */
    maxBody: number;
    tooLong(): Answer;
}

/** @internal The HTTP requests in progress at an endpoint. */
export class Mounted {
    readonly #takers = new Map<number, Taker>();
    readonly #busy: (isBusy: boolean) => void;

    /** `busy` is called with `true` when the first request begins, and with `false` when the last one has ended. */
    constructor(private readonly native: NativeMount, busy: (isBusy: boolean) => void) {
        this.#busy = busy;
    }

    /** Begins a request from the address `peer`, if it is known; returns `undefined` when the endpoint has ended. */
    begin(
        method: string,
        uri: string,
        headers: string[],
        take: (exchange: Exchange) => Taker,
        names?: Names,
        peer?: string
    ): Exchange | undefined {
        const max = names?.maxBody ?? Infinity;
        names?.in(headers);
        const number = this.native.begin(method, uri, headers, peer);
        if (number === null) return undefined;
        const room = new Room(max, lengthOf(headers), () => {
            this.#end(number);
            give(taker, names!.tooLong());
        });
        const exchange = new Exchange(this.native, number, () => this.#end(number), room);
        if (this.#takers.size === 0) this.#busy(true);
        const taker = take(exchange);
        this.#takers.set(number, names ? adapting(taker, exchange, names, method) : taker);
        return exchange;
    }

    head(number: number, status: number, text: string): void {
        this.#takers.get(number)?.head(status, JSON.parse(text));
    }

    piece(number: number, text: string, isLast: boolean): void {
        const taker = this.#takers.get(number);
        if (isLast) this.#end(number);
        taker?.piece(text, isLast);
    }

    room(number: number): void {
        this.#takers.get(number)?.room();
    }

    #end(number: number): void {
        if (!this.#takers.delete(number)) return;
        this.native.end(number);
        if (this.#takers.size === 0) this.#busy(false);
    }
}

/** @internal Passes what a link tells of answers to what `mounted` returns. */
export function mountReceiver(mounted: () => Mounted): Receiver {
    return {
        head: (text, number, status) => mounted().head(number, status, text),
        piece: (text, number, isLast) => mounted().piece(number, text, isLast === 1),
        room: (_, number) => mounted().room(number)
    };
}

function give(taker: Taker, { status, headers, text }: Answer): void {
    taker.head(status, headers);
    taker.piece(text, true);
}

function adapting(taker: Taker, exchange: Exchange, names: Names, method: string): Taker {
    /** Resolves once the answer may begin, to the one that is given in its place. */
    let told: Promise<Answer | undefined> | undefined;
    const soon = (act: () => void) => (told ? void told.then(other => other ?? act()) : act());
    return {
        head: (status, headers) => {
            told = names.out(headers, status, method);
            void told?.then(other => other && (exchange.end(), give(taker, other)));
            soon(() => taker.head(status, headers));
        },
        piece: (text, isLast) => soon(() => taker.piece(text, isLast)),
        room: () => taker.room()
    };
}

/** The length that a request claims for its body. */
function lengthOf(headers: string[]): number {
    const at = headers.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === 'content-length');
    return at < 0 ? 0 : Number(headers[at + 1]);
}

/** Bounds a body; the first piece that exceeds the bound, or that begins a body which claims to, is refused. */
class Room {
    #bytes = 0;
    #isOver = false;

    constructor(private readonly max: number, private readonly claimed: number, private readonly refuse: () => void) {}

    /** Whether a piece is taken. */
    takes(piece: Uint8Array): boolean {
        this.#bytes += piece.length;
        if (Math.max(this.#bytes, this.claimed) <= this.max) return true;
        if (!this.#isOver) this.refuse();
        this.#isOver = true;
        return false;
    }
}

/** @internal One request and its answer. */
export class Exchange {
    /** Call it when the answer is complete, or no longer wanted. */
    readonly end: () => void;

    constructor(private readonly native: NativeMount, private readonly number: number, end: () => void, private readonly room: Room) {
        this.end = end;
    }

    /**
     * Adds a piece of the request's body. Returns whether there is room for more; if not, the taker's `room` is called
     * once there is, unless no more of the body is taken.
     */
    body(piece: Uint8Array): boolean {
        return this.room.takes(piece) && this.native.body(this.number, piece);
    }

    /** Marks the end of the request's body. */
    bodyEnd(): void {
        this.native.bodyEnd(this.number);
    }

    /** Asks for the next piece of the answer. The first piece comes without being asked for. */
    more(): void {
        this.native.more(this.number);
    }
}
