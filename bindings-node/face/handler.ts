import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { noteAuth } from './auth';
import type { Exchange, Mounted, Names, Taker } from './mounted';

type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

/** Whose body a framework may have read already, and of whom a middleware may know who sends it. */
type Incoming = Request & { body?: unknown; originalUrl?: string; auth?: unknown };

/** Serves a request of `node:http` and `node:http2`, or of express and the like. */
export type Handler = (request: Request, response: Response) => void;

/** Headers that are untrue of a body that was read and is written again. */
const OF_BODY = ['content-length', 'content-encoding', 'transfer-encoding'];

/** @internal */
export function serveNode(mounted: Mounted, request: Incoming, response: Response, names?: Names): void {
    // Its client has gone while the endpoint was made: nothing of it comes any more, not even its end.
    if (isGone(response)) return;
    const read = readBody(request);
    const headers = headersOf(request, read !== undefined);
    const forget = noteAuth(request.auth, headers);
    // Express and others leave out of `url` where they have mounted it.
    const uri = request.originalUrl ?? request.url ?? '/';
    const take = (exchange: Exchange) => new Writer(exchange, response as Writable);
    const exchange = mounted.begin(request.method ?? 'GET', uri, headers, take, names);
    if (exchange === undefined) {
        forget();
        return refuse(response, 503);
    }
    response.on('close', () => (forget(), exchange.end()));
    if (read !== undefined) {
        exchange.body(read);
        exchange.bodyEnd();
    } else {
        request.on('data', piece => exchange.body(piece)).on('end', () => exchange.bodyEnd());
    }
}

/** @internal Answers with nothing but a status; the rest of the request is not read. */
export function refuse(response: Response, status: number): void {
    if (response.headersSent) return;
    // HTTP/2 has no such header.
    if (!('stream' in response)) response.setHeader('connection', 'close');
    response.statusCode = status;
    response.end();
}

/** HTTP/2 says so of the stream alone. */
function isGone(response: Response): boolean {
    return 'stream' in response ? response.stream.destroyed : response.destroyed;
}

/** What a framework has read. */
function readBody({ body, readableEnded }: Incoming): Uint8Array | undefined {
    if (body === undefined || !readableEnded) return undefined;
    if (body instanceof Uint8Array) return body;
    return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

function headersOf({ rawHeaders }: Incoming, isRead: boolean): string[] {
    const headers: string[] = [];
    for (let i = 0; i < rawHeaders.length; i += 2) {
        const [name, value] = [rawHeaders[i]!, rawHeaders[i + 1]!];
        // HTTP/2 says it so.
        if (name === ':authority') headers.push('host', value);
        else if (!name.startsWith(':') && !(isRead && OF_BODY.includes(name.toLowerCase()))) headers.push(name, value);
    }
    return headers;
}

/** That of HTTP/2 does the same. What compresses answers can be told to write what it has. */
type Writable = ServerResponse & { flush?: () => void };

/** Writes an answer as fast as it is read. */
class Writer implements Taker {
    readonly #exchange: Exchange;
    readonly #response: Writable;
    readonly #more = () => this.#exchange.more();

    constructor(exchange: Exchange, response: Writable) {
        this.#exchange = exchange;
        this.#response = response;
    }

    head(status: number, headers: string[]): void {
        const response = this.#response;
        // Somebody else has answered meanwhile, as a middleware with a timeout of its own.
        if (response.headersSent) return this.#exchange.end();
        response.writeHead(status, headers);
        // With the first piece, if that is there already.
        process.nextTick(() => isGone(response) || response.writableEnded || response.flushHeaders());
    }

    piece(text: string, isLast: boolean): void {
        const response = this.#response;
        if (isLast) return void response.end(text);
        const isRoom = response.write(text);
        // What compresses answers keeps it otherwise.
        response.flush?.();
        if (isRoom) this.#more();
        else response.once('drain', this.#more);
    }
}
