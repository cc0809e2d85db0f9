import { onAbort } from './abort';
import { noteAuth } from './auth';
import type { Exchange, Mounted, Names, Taker } from './mounted';

/** @internal The request's headers, with the host it was sent to. */
export function webHeadersOf(request: Request): string[] {
    const headers = [...request.headers].flat();
    if (!request.headers.has('host')) headers.push('host', new URL(request.url).host);
    return headers;
}

/** @internal Serves a web-standard `Request`. */
export async function serveWeb(mounted: Mounted, request: Request, auth?: unknown, names?: Names): Promise<Response> {
    const { signal } = request;
    signal.throwIfAborted();
    const url = new URL(request.url);
    const headers = webHeadersOf(request);
    const forgetAuth = noteAuth(auth, headers);
    const body = request.body?.getReader();
    return new Promise((resolve, reject) => {
        let streamer!: Streamer;
        const take = (exchange: Exchange) => (streamer = new Streamer(exchange, resolve));
        const exchange = mounted.begin(request.method, url.pathname + url.search, headers, take, names);
        if (exchange === undefined) {
            forgetAuth();
            return resolve(new Response(null, { status: 503 }));
        }
        const fail = (reason: unknown) => {
            exchange.end();
            streamer.fail(reason);
            reject(reason);
        };
        const forget = onAbort(signal, () => fail(signal.reason));
        streamer.onEnd = () => {
            forget();
            forgetAuth();
            // An unread body stays with its creator: cancelling it could close the connection.
            body?.releaseLock();
        };
        sendBody(body, exchange, streamer).catch(fail);
    });
}

async function sendBody(body: ReadableStreamDefaultReader<Uint8Array> | undefined, exchange: Exchange, streamer: Streamer): Promise<void> {
    for (;;) {
        const { value } = (await body?.read()) ?? {};
        if (value === undefined) return exchange.bodyEnd();
        if (!exchange.body(value)) await new Promise<void>(resolve => (streamer.room = resolve));
    }
}

/** @internal Streams an answer as fast as the client reads it. */
export class Streamer implements Taker {
    readonly #respond: (response: Response) => void;
    readonly #encoder = new TextEncoder();
    #head: ResponseInit | undefined;
    #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
    /** Whether a piece was asked for and has not arrived. */
    #isOwed = true;
    #isOver = false;
    /** Called when the answer is complete or has failed. */
    onEnd: () => void = () => {};
    room: () => void = () => {};

    constructor(private readonly exchange: Pick<Exchange, 'more' | 'end'>, respond: (response: Response) => void) {
        this.#respond = respond;
    }

    head(status: number, headers: string[]): void {
        const pairs = headers.flatMap((name, i) => (i % 2 ? [] : [[name, headers[i + 1]!] as [string, string]]));
        this.#head = { status, headers: pairs };
        // Sends the head together with the first piece, if that is there already.
        process.nextTick(() => this.#begin());
    }

    piece(text: string, isLast: boolean): void {
        this.#isOwed = false;
        if (isLast) this.#end();
        const head = this.#head;
        if (isLast && head) {
            this.#head = undefined;
            return this.#respond(new Response(text === '' ? null : text, head));
        }
        this.#begin();
        if (text !== '') this.#controller?.enqueue(this.#encoder.encode(text));
        if (isLast) this.#controller?.close();
    }

    /** Fails the answer, unless it is complete. */
    fail(reason: unknown): void {
        if (this.#isOver) return;
        this.#end();
        this.#head = undefined;
        this.#controller?.error(reason);
    }

    #begin(): void {
        if (this.#head === undefined) return;
        const body = new ReadableStream<Uint8Array>({
            start: controller => void (this.#controller = controller),
            pull: () => this.#pull(),
            cancel: () => (this.#end(), this.exchange.end())
        });
        const head = this.#head;
        this.#head = undefined;
        this.#respond(new Response(body, head));
    }

    #end(): void {
        this.#isOver = true;
        this.onEnd();
    }

    #pull(): void {
        if (this.#isOwed) return;
        this.#isOwed = true;
        this.exchange.more();
    }
}
