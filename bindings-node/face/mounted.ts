import type { NativeMount } from './native';

/** @internal Receives one answer. */
export interface Taker {
    head(status: number, headers: string[]): void;
    piece(text: string, isLast: boolean): void;
    /** Called when there is room for more of the request's body. */
    room(): void;
}

/** @internal Renames sessions in headers, which are names and values in turn: `in` for requests, `out` for answers. */
export interface Names {
    in(headers: string[]): void;
    out(headers: string[]): void;
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
        names?.in(headers);
        const number = this.native.begin(method, uri, headers, peer);
        if (number === null) return undefined;
        const exchange = new Exchange(this.native, number, () => this.#end(number));
        if (this.#takers.size === 0) this.#busy(true);
        const taker = take(exchange);
        this.#takers.set(number, names ? renaming(taker, names) : taker);
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

function renaming(taker: Taker, names: Names): Taker {
    return {
        head: (status, headers) => (names.out(headers), taker.head(status, headers)),
        piece: (text, isLast) => taker.piece(text, isLast),
        room: () => taker.room()
    };
}

/** @internal One request and its answer. */
export class Exchange {
    /** Call it when the answer is complete, or no longer wanted. */
    readonly end: () => void;

    constructor(private readonly native: NativeMount, private readonly number: number, end: () => void) {
        this.end = end;
    }

    /**
     * Adds a piece of the request's body. Returns whether there is room for more; if not, the taker's `room` is called
     * once there is, unless no more of the body is taken.
     */
    body(piece: Uint8Array): boolean {
        return this.native.body(this.number, piece);
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
