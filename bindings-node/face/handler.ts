import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { noteAuth } from './auth';
import type { Exchange, Mounted, Names, Taker } from './mounted';

type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

/** A request whose body a framework may already have read, and whose sender a middleware may have verified (`auth`). */
type Incoming = Request & { body?: unknown; originalUrl?: string; auth?: unknown };

/** Serves a request of `node:http`, `node:http2`, express or a similar framework. */
export type Handler = (request: Request, response: Response) => void;

/** Headers that no longer apply to a body that was parsed and is serialized again. */
const OF_BODY = ['content-length', 'content-encoding', 'transfer-encoding'];

/** @internal */
export function serveNode(mounted: Mounted, request: Incoming, response: Response, names?: Names): void {
    // The client has disconnected while the endpoint was being created; not even an `end` event would follow.
    if (isGone(response)) return;
    const read = readBody(request);
    const headers = headersOf(request, read !== undefined);
    const forget = noteAuth(request.auth, headers);
    // Express and others strip the mount path from `url`.
    const uri = request.originalUrl ?? request.url ?? '/';
    const take = (exchange: Exchange) => new Writer(exchange, request, response as Writable);
    const peer = request.socket?.remoteAddress;
    // A body that a framework has read is within the limit of that framework.
    const adapted = read && names ? { ...names, maxBody: Infinity } : names;
    const exchange = mounted.begin(request.method ?? 'GET', uri, headers, take, adapted, peer);
    if (exchange === undefined) {
        forget();
        return refuse(response, 503);
    }
    response.on('close', () => (forget(), exchange.end(), request.resume()));
    if (read !== undefined) {
        exchange.body(read);
        exchange.bodyEnd();
    } else {
        // Once the answer has begun, the rest of the body is discarded.
        request.on('data', piece => void (exchange.body(piece) || response.headersSent || request.pause()));
        request.on('end', () => exchange.bodyEnd());
    }
}

/** @internal Answers with a status only; the rest of the request is not read. */
export function refuse(response: Response, status: number): void {
    if (response.headersSent) return;
    // HTTP/2 does not have this header.
    if (!('stream' in response)) response.setHeader('connection', 'close');
    response.statusCode = status;
    response.end();
}

/** On HTTP/2 only the stream shows that the client has disconnected. */
function isGone(response: Response): boolean {
    return 'stream' in response ? response.stream.destroyed : response.destroyed;
}

/** Returns the body that a framework has read. */
function readBody({ body, readableEnded }: Incoming): Uint8Array | undefined {
    if (body === undefined || !readableEnded) return undefined;
    if (body instanceof Uint8Array) return body;
    return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

/** @internal The headers in pairs, as received; without the body's headers if the body was already read. */
export function headersOf({ rawHeaders }: Incoming, isRead: boolean): string[] {
    const headers: string[] = [];
    for (let i = 0; i < rawHeaders.length; i += 2) {
        const [name, value] = [rawHeaders[i]!, rawHeaders[i + 1]!];
        // HTTP/2 sends the host in this pseudo-header.
        if (name === ':authority') headers.push('host', value);
        else if (!name.startsWith(':') && !(isRead && OF_BODY.includes(name.toLowerCase()))) headers.push(name, value);
    }
    return headers;
}

/** A response of HTTP/2 works the same way. A compressing response has `flush`, which sends what is buffered. */
type Writable = ServerResponse & { flush?: () => void };

/** Writes an answer as fast as the client reads it. */
class Writer implements Taker {
    readonly #more = () => this.exchange.more();

    constructor(private readonly exchange: Exchange, private readonly request: Request, private readonly response: Writable) {}

    head(status: number, headers: string[]): void {
        const response = this.response;
        this.room();
        // Something else has answered meanwhile, such as a middleware with its own timeout.
        if (response.headersSent) return this.exchange.end();
        response.writeHead(status, headers);
        // Sends the head together with the first piece, if that is there already.
        process.nextTick(() => isGone(response) || response.writableEnded || response.flushHeaders());
    }

    piece(text: string, isLast: boolean): void {
        const response = this.response;
        if (isLast) return void response.end(text);
        const isRoom = response.write(text);
        // Otherwise a compressing middleware would hold the piece back.
        response.flush?.();
        if (isRoom) this.#more();
        else response.once('drain', this.#more);
    }

    room(): void {
        this.request.resume();
    }
}
