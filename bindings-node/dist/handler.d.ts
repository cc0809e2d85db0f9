import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;
/** Serves a request of `node:http`, `node:http2`, express or a similar framework. */
export type Handler = (request: Request, response: Response) => void;
export {};
